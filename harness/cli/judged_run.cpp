#include "harness/cli/judged_run.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <exception>
#include <thread>

#include "harness/expectations.h"
#include "harness/option_cases.h"
#include "harness/run.h"
#include "harness/subjects/plugin_subject.h"
#include "harness/writers/text.h"
#include "harness/writers/writer.h"
#include "scenarios/json_reader.h"
#include "suites/conformance/family.h"

namespace zeroproof::harness {

namespace {

std::vector<Case> cases_of(const VerifyOptions& options) {
    std::vector<Case> cases;
    if (options.case_files.empty()) cases = suites::all_cases();
    for (const std::string& file : options.case_files)
        for (Case& c : suites::read_family(scenarios::read_text_file(file), file))
            cases.push_back(std::move(c));
    if (options.seed)
        for (Case& c : cases) {
            c.seed = *options.seed;
            for (Case& twin : c.twin) twin.seed = *options.seed;
        }
    return cases;
}

void report(const VerifyOptions& options, const Record& record) {
    fmt::print("{}", to_terminal(record, isatty(STDOUT_FILENO) != 0));
    if (!options.json_file.empty()) write_whole(options.json_file, to_json(record));
    if (!options.junit_file.empty()) write_whole(options.junit_file, to_junit(record));
    if (!options.csv_file.empty()) write_whole(options.csv_file, to_csv(record));
    if (!options.markdown_file.empty()) write_whole(options.markdown_file, to_markdown(record));
}

}  // namespace

ProgressLine::ProgressLine(const std::string& mode)
    : shown_(mode == "always" || (mode == "auto" && isatty(STDERR_FILENO) != 0)) {}

void ProgressLine::clear() {
    if (drawn_) fmt::print(stderr, "\r\x1b[K");
    drawn_ = false;
}

void ProgressLine::show(std::size_t done, std::size_t total, std::size_t failures) {
    const auto now = std::chrono::steady_clock::now();
    if (!shown_ || (done < total && now - last_ < std::chrono::milliseconds(100))) return;
    last_ = now;
    drawn_ = true;
    fmt::print(stderr, "\r\x1b[K{} of {} cases, {} failures", done, total, failures);
    std::fflush(stderr);
}

void ProgressLine::tell(const std::string& what) {
    if (!shown_) return;
    fmt::print(stderr, "\r\x1b[K{} ...", what);
    drawn_ = true;
    std::fflush(stderr);
}

Chosen choose_cases(const VerifyOptions& options, const suites::Declaration& declaration) {
    Chosen chosen;
    chosen.all = cases_of(options);
    for (Case& c : option_cases(chosen.all, declaration)) chosen.all.push_back(std::move(c));
    Selection selection = options.selection;
    selection.sample = options.sample;
    chosen.cases = select_cases(chosen.all, selection, declaration);
    chosen.clauses = select_clauses(options.clauses);
    return chosen;
}

void demand_cases(const Chosen& chosen) {
    if (chosen.cases.empty())
        throw scenarios::BadInput(
            "no case is left by --stage, --ranks, --filter and what the subject declares; "
            "'zeroproof verify --list' shows those of the reference");
}

int list_cases(const Chosen& chosen) {
    const auto& clauses = chosen.clauses;
    for (const Case* c : chosen.cases) {
        std::size_t applying = 0;
        for (const suites::Clause& clause : suites::all_clauses())
            if (clause.applies(*c) && (clauses.empty() || std::ranges::count(clauses, &clause)))
                ++applying;
        if (applying > 0) fmt::print("{}  ({} clauses)\n", c->id, applying);
    }
    return 0;
}

int judge_and_report(const VerifyOptions& options, suites::Subject& subject, const Chosen& chosen,
                     ProgressLine& line, const std::function<void(int code)>& end_stuck) {
    if (options.stop_at_first_failure && !options.expect_file.empty())
        throw scenarios::BadInput(
            "--stop-at-first-failure and --expect exclude each other: expected "
            "failures need the whole run");
    std::vector<Expectation> expectations;
    if (!options.expect_file.empty()) expectations = read_expectations(options.expect_file);
    for (const std::string& file :
         {options.json_file, options.junit_file, options.csv_file, options.markdown_file})
        if (!file.empty()) check_writable(file);

    Record record;
    record.subject = subject.declaration().name;
    if (!options.run_command.empty())
        record.subject_argument = "";
    else if (names_plugin(options.subject) || options.backend == "mpi")
        record.subject_argument = options.subject;
    record.command = options.command;
    if (!options.run_command.empty())
        record.rerun_options += " --run " + shell_quoted(options.run_command);
    if (options.backend != "threads") record.rerun_options += " --backend " + options.backend;
    if (!options.declaration_file.empty())
        record.rerun_options += " --declaration " + shell_quoted(options.declaration_file);
    if (!options.python.empty())
        record.rerun_options += " --python " + shell_quoted(options.python);
    for (const std::string& file : options.case_files)
        record.rerun_options += " --cases " + shell_quoted(file);
    if (options.seed) record.rerun_options += fmt::format(" --seed {}", *options.seed);
    record.started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
    record.seed = options.seed.value_or(Case{}.seed);
    record.jobs = options.jobs > 0
                      ? options.jobs
                      : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    {
        RunOptions run_options;
        run_options.jobs = record.jobs;
        run_options.timeout = std::chrono::seconds(options.timeout_seconds);
        run_options.clauses = chosen.clauses;
        run_options.stop_at_first_failure = options.stop_at_first_failure;
        run_options.stuck = [&](const Record& unfinished) {
            // Nothing may leave this function: whoever waits for the stuck rank waits for ever.
            int code = exit_code(unfinished);
            try {
                report(options, unfinished);
            } catch (const std::exception& error) {
                fmt::print(stderr, "zeroproof: {}\n", error.what());
                code = 2;  // as where a report cannot be written after a whole run
            }
            std::fflush(nullptr);
            end_stuck(code);
        };
        run_options.progress = [&](std::size_t done, std::size_t total, std::size_t failures) {
            line.show(done, total, failures);
        };
        run(subject, chosen.cases, run_options, record);
        line.clear();
    }
    apply_expectations(expectations, record);
    report(options, record);
    return exit_code(record);
}

}  // namespace zeroproof::harness
