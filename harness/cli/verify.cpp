#include "harness/cli/verify.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <thread>

#include "harness/expectations.h"
#include "harness/run.h"
#include "harness/subjects/reference_subject.h"
#include "harness/writers/text.h"
#include "harness/writers/writer.h"
#include "suites/conformance/family.h"
#include "suites/conformance/json_reader.h"

namespace zeroproof::harness {

namespace {

std::unique_ptr<suites::Subject> make_subject(const std::string& name) {
    if (name == "reference") return make_reference_subject();
    throw suites::BadInput(fmt::format("unknown subject '{}'; known is: reference", name));
}

std::vector<Case> cases_of(const VerifyOptions& options) {
    std::vector<Case> cases;
    if (options.case_files.empty()) cases = suites::all_cases();
    for (const std::string& file : options.case_files)
        for (Case& c : suites::read_family(suites::read_text_file(file), file))
            cases.push_back(std::move(c));
    if (options.seed)
        for (Case& c : cases) {
            c.seed = *options.seed;
            for (Case& twin : c.twin) twin.seed = *options.seed;
        }
    return cases;
}

int list(const std::vector<const Case*>& cases, const std::vector<const suites::Clause*>& clauses) {
    for (const Case* c : cases) {
        std::size_t applying = 0;
        for (const suites::Clause& clause : suites::all_clauses())
            if (clause.applies(*c) && (clauses.empty() || std::ranges::count(clauses, &clause)))
                ++applying;
        if (applying > 0) fmt::print("{}  ({} clauses)\n", c->id, applying);
    }
    return 0;
}

// One line, rewritten, on the terminal.
class ProgressLine {
  public:
    explicit ProgressLine(const std::string& mode)
        : shown_(mode == "always" || (mode == "auto" && isatty(STDERR_FILENO) != 0)) {}
    ~ProgressLine() {
        if (drawn_) fmt::print(stderr, "\r\x1b[K");
    }
    void show(std::size_t done, std::size_t total, std::size_t failures) {
        const auto now = std::chrono::steady_clock::now();
        if (!shown_ || (done < total && now - last_ < std::chrono::milliseconds(100))) return;
        last_ = now;
        drawn_ = true;
        fmt::print(stderr, "\r\x1b[K{} of {} cases, {} failures", done, total, failures);
        std::fflush(stderr);
    }

  private:
    bool shown_;
    bool drawn_ = false;
    std::chrono::steady_clock::time_point last_{};
};

void report(const VerifyOptions& options, const Record& record) {
    fmt::print("{}", to_terminal(record, isatty(STDOUT_FILENO) != 0));
    if (!options.json_file.empty()) write_whole(options.json_file, to_json(record));
    if (!options.junit_file.empty()) write_whole(options.junit_file, to_junit(record));
    if (!options.csv_file.empty()) write_whole(options.csv_file, to_csv(record));
    if (!options.markdown_file.empty()) write_whole(options.markdown_file, to_markdown(record));
}

}  // namespace

int verify(const VerifyOptions& options) {
    const auto subject = make_subject(options.subject);
    const std::vector<Case> cases = cases_of(options);
    const auto chosen = select_cases(cases, options.selection);
    const auto clauses = select_clauses(options.clauses);
    if (chosen.empty())
        throw suites::BadInput(
            "no case is left by --stage, --ranks and --filter; "
            "'zeroproof verify --list' shows them all");
    if (options.list) return list(chosen, clauses);

    if (options.stop_at_first_failure && !options.expect_file.empty())
        throw suites::BadInput(
            "--stop-at-first-failure and --expect exclude each other: expected "
            "failures need the whole run");
    std::vector<Expectation> expectations;
    if (!options.expect_file.empty()) expectations = read_expectations(options.expect_file);
    for (const std::string& file :
         {options.json_file, options.junit_file, options.csv_file, options.markdown_file})
        if (!file.empty()) check_writable(file);

    Record record;
    record.subject = options.subject;
    record.command = options.command;
    for (const std::string& file : options.case_files)
        record.rerun_options += " --cases " + shell_quoted(file);
    if (options.seed) record.rerun_options += fmt::format(" --seed {}", *options.seed);
    record.started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
    record.seed = options.seed.value_or(Case{}.seed);
    record.jobs = options.jobs > 0
                      ? options.jobs
                      : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    {
        ProgressLine line(options.progress);
        RunOptions run_options;
        run_options.jobs = record.jobs;
        run_options.timeout = std::chrono::seconds(options.timeout_seconds);
        run_options.clauses = clauses;
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
            std::_Exit(code);
        };
        run_options.progress = [&](std::size_t done, std::size_t total, std::size_t failures) {
            line.show(done, total, failures);
        };
        run(*subject, chosen, run_options, record);
    }
    apply_expectations(expectations, record);
    report(options, record);
    return exit_code(record);
}

}  // namespace zeroproof::harness
