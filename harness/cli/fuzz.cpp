#include "harness/cli/fuzz.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <thread>

#include "harness/programs/fuzz_report.h"
#include "harness/programs/fuzzer.h"
#include "harness/writers/text.h"
#include "harness/writers/writer.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {

namespace {

namespace fs = std::filesystem;

class ProgressLine {
  public:
    explicit ProgressLine(const std::string& wanted)
        : shown_(wanted == "always" || (wanted == "auto" && isatty(STDERR_FILENO) != 0)) {}
    ~ProgressLine() { clear(); }
    void clear() {
        if (drawn_) fmt::print(stderr, "\r\x1b[K");
        drawn_ = false;
    }
    void show(const FuzzProgress& progress) {
        const auto now = std::chrono::steady_clock::now();
        if (progress.doing.empty() && now - last_ < std::chrono::milliseconds(100)) return;
        draw(fmt::format("{}, {} failed, {}{}{}", counted(progress.programs, "program"),
                         progress.failing, counted(progress.groups, "group"),
                         progress.doing.empty() ? "" : "; ", progress.doing));
    }
    void draw(const std::string& line) {
        if (!shown_) return;
        last_ = std::chrono::steady_clock::now();
        drawn_ = true;
        fmt::print(stderr, "\r\x1b[K{}", line);
        std::fflush(stderr);
    }

  private:
    bool shown_;
    bool drawn_ = false;
    std::chrono::steady_clock::time_point last_{};
};

// Of a subject that declares nothing no action beyond the common ones is asked: it would refuse
// most programs.
suites::Declaration declaration_of(const suites::Subject& subject) {
    suites::Declaration declaration = subject.declaration();
    if (declaration.undeclared) declaration.actions = suites::common_actions();
    return declaration;
}

ProgramSpace space_of(const FuzzCommand& options, const suites::Declaration& declaration) {
    ProgramSpace space{declaration, {}, options.ranks};
    for (const int stage : declaration.stages)
        if (options.stages.empty() || std::ranges::count(options.stages, stage) > 0)
            space.stages.push_back(stage);
    if (space.stages.empty())
        throw scenarios::BadInput(fmt::format("{} declares the stages {}: none is left by --stage",
                                              declaration.name,
                                              fmt::join(declaration.stages, ", ")));
    if (space.ranks.empty())
        for (int n = 1; n <= std::min(kMostRanks, declaration.most_ranks); ++n)
            space.ranks.push_back(n);
    return space;
}

std::string how_to_choose(const FuzzCommand& options) {
    std::string text;
    const auto add = [&](const char* name, const std::string& value) {
        if (!value.empty()) text += fmt::format(" {} {}", name, shell_quoted(value));
    };
    add("--run", options.subject.run_command);
    add("--declaration", options.subject.declaration_file);
    add("--python", options.subject.python);
    if (options.subject.any_version) text += " --any-version";
    return text;
}

std::string how_to_make(const FuzzCommand& options) {
    std::string text;
    if (!options.stages.empty()) text += fmt::format(" --stage {}", fmt::join(options.stages, ","));
    if (!options.ranks.empty()) text += fmt::format(" --ranks {}", fmt::join(options.ranks, ","));
    return text + how_to_choose(options);
}

void tell(const FuzzCommand& options, const FuzzRecord& record) {
    FuzzReport report{record,
                      options.subject.run_command.empty() ? options.subject.subject : "",
                      options.command,
                      how_to_make(options),
                      how_to_choose(options),
                      options.seed,
                      {}};
    if (!options.save_folder.empty()) report.files = save_groups(record, options.save_folder);
    fmt::print("{}", to_terminal(report));
    if (!options.json_file.empty()) write_whole(options.json_file, to_json(report));
}

void prepare_outputs(const FuzzCommand& options) {
    if (!options.json_file.empty()) check_writable(options.json_file);
    if (options.save_folder.empty()) return;
    std::error_code error;
    fs::create_directories(options.save_folder, error);
    if (error)
        throw Unwritable(fmt::format("cannot make {}: {}", options.save_folder, error.message()));
    check_writable(fs::path(options.save_folder) / "01.json");
}

}  // namespace

int fuzz_command(const FuzzCommand& options) {
    ProgressLine line(options.progress);
    const auto subject =
        make_subject(options.subject, [&](const std::string& what) { line.draw(what + " ..."); });
    prepare_outputs(options);
    const suites::Declaration declaration = declaration_of(*subject);
    FuzzRun run{space_of(options, declaration)};
    run.seed = options.seed;
    run.time = std::chrono::duration<double>(options.seconds);
    run.only = options.only;
    run.jobs = options.jobs > 0
                   ? options.jobs
                   : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    run.timeout = std::chrono::seconds(options.timeout_seconds);
    run.stop_at_first = options.stop_at_first;
    run.shrink = !options.no_shrink;
    run.progress = [&](const FuzzProgress& progress) { line.show(progress); };
    run.stuck = [&](const FuzzRecord& unfinished) {
        // Nothing may leave this function: whoever waits for the stuck rank waits for ever.
        int code = exit_code(unfinished);
        try {
            tell(options, unfinished);
        } catch (const std::exception& error) {
            fmt::print(stderr, "zeroproof: {}\n", error.what());
            code = 2;
        }
        std::fflush(nullptr);
        std::_Exit(code);
    };
    const FuzzRecord record = fuzz(*subject, run);
    line.clear();
    tell(options, record);
    return exit_code(record);
}

}  // namespace zeroproof::harness
