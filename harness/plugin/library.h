// A shared object with an engine, and what it says of itself.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "harness/plugin/zeroproof.h"
#include "suites/conformance/evidence.h"

namespace zeroproof::harness {

// The shared object cannot be judged at all; says why, and what to do.
inline constexpr int kUnfitPlugin = 4;  // the exit code
class UnfitPlugin : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Code of the shared object runs in this process from here on: it is for a child process. Never
// unloaded, since threads that it has left behind may still run.
class PluginLibrary {
  public:
    // Throws UnfitPlugin.
    explicit PluginLibrary(const std::filesystem::path& path);

    const zeroproof_engine& engine() const { return engine_; }

  private:
    zeroproof_engine engine_{};  // functions that its author did not know of are null
};

struct PluginDescription {
    std::string name;
    std::string version;
    std::string declaration;  // JSON, as suites::read_declaration takes it
    suites::Observations observed;
};

// Throws UnfitPlugin for what is no declaration.
PluginDescription describe(const zeroproof_engine& engine);

}  // namespace zeroproof::harness
