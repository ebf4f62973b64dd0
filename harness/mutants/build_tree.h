// The build that this program comes from: how one source is compiled, and how the program is
// linked.
#pragma once

#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace zeroproof::harness {

// Something of the build is gone, or older than the source. Says what to do.
class UnusableBuild : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// A program and its arguments, and the folder to start it in.
struct Command {
    std::vector<std::string> arguments;
    std::filesystem::path folder;
};

// A mutant is the program relinked with one object of the reference replaced, not a plugin beside
// it: the oracle, the clauses and the harness are then the very objects that judge the unmodified
// reference, a mutant of any layer below can be made the same way, and one that crashes or hangs
// ends its own process only. The replaced object comes before the static libraries, so that nothing
// asks for the library's member.
//
// Compilations are those of compile_commands.json. The link is the one that made the program: CMake
// passes it to note_link.sh, which writes it down argument by argument.
class BuildTree {
  public:
    // Throws UnusableBuild.
    BuildTree(std::filesystem::path source_tree, std::filesystem::path build_tree);

    const std::filesystem::path& source_tree() const { return source_tree_; }
    // The unmodified program.
    const std::filesystem::path& program() const { return program_; }

    // Throws UnusableBuild if the build does not compile the file, or has not since it was changed.
    Command compile(const std::string& file, const std::filesystem::path& mutated,
                    const std::filesystem::path& object) const;
    Command link(const std::filesystem::path& object, const std::filesystem::path& program) const;

  private:
    void read_compile_commands();
    void read_link();

    std::filesystem::path source_tree_;
    std::filesystem::path build_tree_;
    std::map<std::filesystem::path, Command> compilations_;  // by absolute source
    Command link_;
    std::filesystem::path program_;
};

// For tests. `command` compiles `source`; the result compiles `mutated` into `object`, writes no
// dependencies, and takes a warning for no error: the fault counts, not its style.
std::vector<std::string> recompile(const std::vector<std::string>& command,
                                   const std::filesystem::path& source,
                                   const std::filesystem::path& mutated,
                                   const std::filesystem::path& object);
// `command` links a program; the result links `program`, `object` coming before every library.
// Throws UnusableBuild if the command names no output or no static library.
std::vector<std::string> relink(const std::vector<std::string>& command,
                                const std::filesystem::path& object,
                                const std::filesystem::path& program);

}  // namespace zeroproof::harness
