#include "harness/mutants/build_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/mutants/command_line.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {

namespace {

namespace fs = std::filesystem;

constexpr const char* kCompileCommands = "compile_commands.json";
constexpr const char* kLink = "zeroproof.link";  // by note_link.sh

[[noreturn]] void refuse(const std::string& what, const fs::path& source, const fs::path& build) {
    throw UnusableBuild(fmt::format(
        "{}\nMutants are built from the source tree {} in the build tree {}. Bring both back to "
        "where they were, or configure and build anew: cmake --preset release && ninja -C "
        "build/release zeroproof",
        what, source.string(), build.string()));
}

bool is_static_library(const std::string& argument) {
    return argument.ends_with(".a");
}

}  // namespace

std::vector<std::string> recompile(const std::vector<std::string>& command, const fs::path& source,
                                   const fs::path& mutated, const fs::path& object) {
    std::vector<std::string> result;
    for (std::size_t i = 0; i < command.size(); ++i) {
        const std::string& argument = command[i];
        if (argument == "-o" || argument == "-MF" || argument == "-MT" || argument == "-MQ")
            ++i;
        else if (argument != "-MD" && argument != "-MMD" && argument != source)
            result.push_back(argument);
    }
    for (const std::string& argument :
         {std::string("-Wno-error"), std::string("-o"), object.string(), mutated.string()})
        result.push_back(argument);
    return result;
}

std::vector<std::string> relink(const std::vector<std::string>& command, const fs::path& object,
                                const fs::path& program) {
    std::vector<std::string> result = command;
    const auto output = std::ranges::find(result, "-o");
    if (output == result.end() || output + 1 == result.end())
        throw UnusableBuild("the link of zeroproof names no output");
    *(output + 1) = program.string();
    const auto library = std::ranges::find_if(result, is_static_library);
    if (library == result.end())
        throw UnusableBuild("the link of zeroproof names no static library to replace a member of");
    result.insert(library, object.string());
    return result;
}

BuildTree::BuildTree(fs::path source_tree, fs::path build_tree)
    : source_tree_(std::move(source_tree)), build_tree_(std::move(build_tree)) {
    if (!fs::is_directory(source_tree_))
        refuse("The source tree is gone.", source_tree_, build_tree_);
    if (!fs::is_directory(build_tree_))
        refuse("The build tree is gone.", source_tree_, build_tree_);
    read_compile_commands();
    read_link();
}

void BuildTree::read_compile_commands() {
    const std::string file = (build_tree_ / kCompileCommands).string();
    try {
        const scenarios::Json document =
            scenarios::parse_json(scenarios::read_text_file(file), file);
        for (const scenarios::JsonReader& entry : scenarios::JsonReader(document, file).items())
            compilations_[entry.at("file").text()] = {split_command(entry.at("command").text()),
                                                      entry.at("directory").text()};
    } catch (const scenarios::BadInput& error) {
        refuse(error.what(), source_tree_, build_tree_);
    } catch (const BadCommand& error) {
        refuse(fmt::format("{}: {}", file, error.what()), source_tree_, build_tree_);
    }
}

void BuildTree::read_link() {
    const fs::path file = build_tree_ / kLink;
    std::ifstream stream(file);
    std::string folder;
    if (!std::getline(stream, folder))
        refuse(fmt::format("{} cannot be read: how the program is linked is not known.",
                           file.string()),
               source_tree_, build_tree_);
    link_.folder = folder;
    for (std::string argument; std::getline(stream, argument);) link_.arguments.push_back(argument);
    const auto output = std::ranges::find(link_.arguments, "-o");
    if (output == link_.arguments.end() || output + 1 == link_.arguments.end())
        refuse(fmt::format("{} names no output.", file.string()), source_tree_, build_tree_);
    program_ = link_.folder / *(output + 1);
    if (!fs::is_regular_file(program_))
        refuse(fmt::format("The program {} is gone.", program_.string()), source_tree_,
               build_tree_);
}

Command BuildTree::compile(const std::string& file, const fs::path& mutated,
                           const fs::path& object) const {
    const fs::path source = source_tree_ / file;
    const auto found = compilations_.find(source);
    if (found == compilations_.end())
        refuse(fmt::format("The build does not compile {}.", source.string()), source_tree_,
               build_tree_);
    const Command& command = found->second;
    const auto output = std::ranges::find(command.arguments, "-o");
    std::error_code missing;
    if (output == command.arguments.end() || output + 1 == command.arguments.end() ||
        fs::last_write_time(command.folder / *(output + 1), missing) <
            fs::last_write_time(source) ||
        missing)
        refuse(fmt::format("{} was changed since it was compiled: ninja -C {} zeroproof",
                           source.string(), build_tree_.string()),
               source_tree_, build_tree_);
    return {recompile(command.arguments, source, mutated, object), command.folder};
}

Command BuildTree::link(const fs::path& object, const fs::path& program) const {
    return {relink(link_.arguments, object, program), link_.folder};
}

}  // namespace zeroproof::harness
