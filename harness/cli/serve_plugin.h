// What runs in the child process of an engine plugin.
#pragma once

#include <filesystem>
#include <string>

namespace zeroproof::harness {

// The arguments of both commands.
struct PluginCommands {
    std::string engine;
    std::string output;
    std::string cases;
    std::string results;
};

// Writes what the engine says of itself into `output`, or to the standard output if that is empty.
// Returns the exit code. Throws UnfitPlugin and Unwritable.
int describe_plugin(const std::filesystem::path& plugin, const std::filesystem::path& output);

// Runs every case in `cases` and writes evidence into `results`, as docs/protocol.md describes.
// Returns the exit code. Throws UnfitPlugin, scenarios::BadInput and Unwritable.
int serve_plugin(const std::filesystem::path& plugin, const std::filesystem::path& cases,
                 const std::filesystem::path& results);

}  // namespace zeroproof::harness
