#include "harness/subjects/plugin_subject.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <string_view>

#include "harness/plugin/library.h"
#include "harness/process/child.h"
#include "harness/subjects/process_subject.h"
#include "harness/temporary_folder.h"
#include "harness/writers/text.h"
#include "scenarios/json_reader.h"
#include "suites/conformance/declaration_reader.h"

namespace zeroproof::harness {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kDescribeTimeout{60};
// Even if the program's file has been replaced meanwhile.
constexpr const char* kThisProgram = "/proc/self/exe";

std::string text_in(const fs::path& file) {
    std::string text = fs::exists(file) ? scenarios::read_text_file(file.string()) : "";
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return printable_lines(text.substr(text.size() - std::min<std::size_t>(text.size(), 2000)));
}

// How the engine's own code has ended the process that asked it.
std::string ended(const ChildEnd& end, const fs::path& plugin) {
    std::string how;
    switch (end.how) {
        case ChildEnd::How::exited: how = fmt::format("ended with exit code {}", end.code); break;
        case ChildEnd::How::signalled:
            how = fmt::format("was ended by signal {} ({})", end.code, strsignal(end.code));
            break;
        case ChildEnd::How::timed_out:
            how = fmt::format("did not end within {} s", kDescribeTimeout.count());
            break;
    }
    return fmt::format(
        "the process that loads and describes it {}; see where with 'gdb --args zeroproof "
        "describe-plugin {}'",
        how, shell_quoted(plugin.string()));
}

suites::Declaration declaration_of(const fs::path& plugin) {
    const TemporaryFolder folder;
    const fs::path output = folder.path() / "output";
    const fs::path description = folder.path() / "description.json";
    const ChildGuard guard;
    const ChildEnd end =
        run_child({kThisProgram, "describe-plugin", plugin.string(), description.string()},
                  fs::current_path(), output, kDescribeTimeout);
    if (end.exited_with(0) && fs::exists(description))
        return suites::read_declaration(scenarios::read_text_file(description.string()),
                                        plugin.string());
    std::string words = text_in(output);
    constexpr std::string_view kOurs = "zeroproof: ";
    const std::size_t ours = words.rfind(kOurs);
    if (end.exited_with(kUnfitPlugin) && ours != std::string::npos)
        words = words.substr(ours + kOurs.size());
    else
        words = ended(end, plugin) + (words.empty() ? "" : "; its last words: " + words);
    throw UnfitPlugin(fmt::format("{}: {}", plugin.string(), words));
}

}  // namespace

bool names_plugin(const std::string& subject) {
    return subject.find('/') != std::string::npos || subject.ends_with(".so");
}

std::unique_ptr<suites::Subject> make_plugin_subject(
    const std::string& path, std::function<void(const std::string& what)> progress) {
    std::error_code error;
    const fs::path plugin = fs::absolute(path);
    if (!fs::is_regular_file(plugin, error))
        throw scenarios::BadInput(fmt::format(
            "there is no file '{}': expected the shared object of an engine, docs/plugin.md",
            path));
    ProcessOptions process;
    process.declaration = declaration_of(plugin);
    process.progress = std::move(progress);
    process.launch = [plugin](int, const std::string& cases, const std::string& results) -> Launch {
        return {{kThisProgram, "serve-plugin", plugin.string(), cases, results}, {}};
    };
    return make_process_subject(std::move(process));
}

}  // namespace zeroproof::harness
