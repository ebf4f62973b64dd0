#include "harness/mutants/run_mutants.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "harness/temporary_folder.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

constexpr seconds kMostBuilding{600};
constexpr std::size_t kErrorLines = 6;
constexpr std::size_t kTail = 600;  // bytes of what a mutant said last
constexpr int kConforms = 0;
constexpr int kViolation = 1;
constexpr int kInconclusive = 3;

double seconds_since(Clock::time_point then) {
    return std::chrono::duration<double>(Clock::now() - then).count();
}

std::string text_of(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

// The first lines that tell of an error, or else the first of all.
std::string first_errors(const fs::path& output) {
    std::ifstream stream(output);
    std::string errors;
    std::string others;
    std::size_t kept = 0;
    std::size_t seen = 0;
    for (std::string line; std::getline(stream, line) && kept < kErrorLines;) {
        const bool tells = line.find("error") != std::string::npos ||
                           line.find("undefined reference") != std::string::npos;
        if (tells && ++kept > 0) errors += line + '\n';
        if (++seen <= kErrorLines) others += line + '\n';
    }
    return errors.empty() ? others : errors;
}

std::string tell(const ChildEnd& end) {
    switch (end.how) {
        case ChildEnd::How::timed_out: return "the watchdog ended it";
        case ChildEnd::How::signalled: return fmt::format("ended by signal {}", end.code);
        case ChildEnd::How::exited: break;
    }
    return fmt::format("ended with exit code {}", end.code);
}

class MutantRunner {
  public:
    MutantRunner(const std::vector<Mutant>& mutants, const BuildTree& build,
                 const MutantRunOptions& options, const fs::path& folder)
        : mutants_(mutants),
          build_(build),
          options_(options),
          folder_(folder),
          jobs_(options.jobs > 0
                    ? options.jobs
                    : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))),
          results_(mutants.size()) {}

    std::vector<MutantResult> run() {
        require_fit_baseline();
        {
            std::vector<std::jthread> workers;
            for (int job = 0; job < jobs_; ++job) workers.emplace_back([this] { work(); });
        }
        if (error_) std::rethrow_exception(error_);
        return std::move(results_);
    }

  private:
    void require_fit_baseline() {
        const Verification baseline = fuzzes() ? search(build_.program(), folder_)
                                               : verify(build_.program(), folder_, {}, jobs_);
        if (baseline.end.exited_with(kConforms) || baseline.end.exited_with(kInconclusive)) return;
        throw UnfitBaseline(fmt::format(
            "the unmodified reference does not conform ({}): mutants would tell nothing. See: {} "
            "{} reference",
            baseline.failed.empty() ? tell(baseline.end) : baseline.failed.front(),
            build_.program().string(), fuzzes() ? "fuzz" : "verify"));
    }

    void work() {
        for (std::size_t i; !stop_ && (i = next_++) < mutants_.size();) {
            try {
                results_[i] = examine(mutants_[i], folder_ / fmt::format("{:04}", i));
            } catch (...) {
                const std::lock_guard lock(mutex_);
                if (!error_) error_ = std::current_exception();
                stop_ = true;
                return;
            }
            const std::lock_guard lock(mutex_);
            if (options_.progress) options_.progress(++done_, mutants_.size(), results_[i]);
        }
    }

    MutantResult examine(const Mutant& mutant, const fs::path& folder) {
        MutantResult result;
        result.mutant = mutant;
        fs::create_directories(folder);
        const fs::path program = folder / "zeroproof";
        const auto began = Clock::now();
        const bool built = make_program(mutant, folder, program, result.note);
        result.build_seconds = seconds_since(began);
        if (!built) {
            result.outcome = MutantOutcome::not_built;
        } else {
            const auto built_at = Clock::now();
            if (fuzzes())
                classify_search(search(program, folder), result);
            else
                classify(
                    verify(program, folder, mutant.killed_by, 1),
                    [&] { return verify(program, folder, {}, 1); }, result);
            if (result.outcome == MutantOutcome::crashed ||
                result.outcome == MutantOutcome::timed_out)
                result.note += fmt::format("\n{}", tail(folder / "verify.txt"));
            result.run_seconds = seconds_since(built_at);
        }
        if (!options_.keep) fs::remove_all(folder);
        return result;
    }

    bool make_program(const Mutant& mutant, const fs::path& folder, const fs::path& program,
                      std::string& errors) {
        // The name stays, so that messages read as usual.
        const fs::path source = folder / fs::path(mutant.file).filename();
        const fs::path object = folder / "mutant.o";
        const fs::path output = folder / "build.txt";
        std::ofstream(source, std::ios::binary) << mutated_source(mutant, build_.source_tree());
        for (const Command& command :
             {build_.compile(mutant.file, source, object), build_.link(object, program)}) {
            const ChildEnd end =
                run_child(command.arguments, command.folder, output, kMostBuilding);
            if (end.exited_with(0)) continue;
            errors = first_errors(output);
            if (errors.empty()) errors = tell(end);
            return false;
        }
        return true;
    }

    bool fuzzes() const { return options_.fuzz.count() > 0; }

    // With random programs, to the first that fails.
    Verification search(const fs::path& program, const fs::path& folder) {
        const fs::path record = folder / "record.json";
        fs::remove(record);
        const ChildEnd end = run_child(
            {program.string(), "fuzz", "reference", "--stop-at-first", "--no-shrink", "--jobs", "1",
             "--seconds", fmt::format("{}", options_.fuzz.count()), "--seed",
             fmt::format("{}", options_.seed), "--timeout",
             fmt::format("{}", options_.timeout.count()), "--json", record.string()},
            folder, folder / "verify.txt", options_.fuzz + 4 * options_.timeout + seconds(60));
        return read_search(end, text_of(record));
    }

    // With one clause or, if it is empty, all.
    Verification verify(const fs::path& program, const fs::path& folder, const std::string& clause,
                        int jobs) {
        const fs::path record = folder / "record.json";
        fs::remove(record);
        std::vector<std::string> arguments{program.string(), "verify", "reference"};
        const auto add = [&](std::initializer_list<std::string> more) {
            arguments.insert(arguments.end(), more);
        };
        if (!clause.empty()) add({"--clause", clause});
        add({"--stop-at-first-failure", "--jobs", fmt::format("{}", jobs), "--timeout",
             fmt::format("{}", options_.timeout.count()), "--json", record.string()});
        // A rank that computes without end is found after three time-outs.
        const auto limit = 4 * options_.timeout + seconds(60);
        const ChildEnd end = run_child(arguments, folder, folder / "verify.txt", limit);
        return {end, failed_clauses(text_of(record))};
    }

    static std::string tail(const fs::path& file) {
        const std::string text = text_of(file);
        return text.substr(text.size() - std::min(kTail, text.size()));
    }

    const std::vector<Mutant>& mutants_;
    const BuildTree& build_;
    const MutantRunOptions& options_;
    const fs::path& folder_;
    int jobs_;
    std::vector<MutantResult> results_;
    std::atomic<std::size_t> next_ = 0;
    std::atomic<bool> stop_ = false;
    std::mutex mutex_;
    std::size_t done_ = 0;
    std::exception_ptr error_;
};

// Of every object with a verdict "fail", the clause that it is about.
void collect_failed(const scenarios::Json& json, std::set<std::string>& failed) {
    if (json.is_object() && json.contains("verdict") && json.contains("clause") &&
        json["verdict"] == "fail" && json["clause"].is_string())
        failed.insert(json["clause"].get<std::string>());
    if (json.is_structured())
        for (const scenarios::Json& part : json) collect_failed(part, failed);
}

}  // namespace

std::string_view name_of(MutantOutcome outcome) {
    constexpr std::string_view names[] = {"killed",    "killed by another", "survived",
                                          "not built", "crashed",           "timed out"};
    return names[static_cast<std::size_t>(outcome)];
}

std::vector<std::string> failed_clauses(std::string_view record) {
    std::set<std::string> failed;
    try {
        collect_failed(scenarios::parse_json(record, "record"), failed);
    } catch (const scenarios::BadInput&) {
        // The child has ended before it wrote the whole.
    }
    return {failed.begin(), failed.end()};
}

Verification read_search(ChildEnd end, std::string_view record) {
    Verification search{end, {}};
    try {
        const scenarios::Json json = scenarios::parse_json(record, "record");
        std::set<std::string> failed;
        for (const scenarios::Json& group : json.at("groups")) {
            failed.insert(group.at("clause").get<std::string>());
            for (const scenarios::Json& other : group.at("fails_too"))
                failed.insert(other.get<std::string>());
        }
        search.failed.assign(failed.begin(), failed.end());
        if (const scenarios::Json& after = json.at("first_failure_after_seconds");
            after.is_number())
            search.found_after = after.get<double>();
    } catch (const std::exception&) {
        // The child has ended before it wrote the whole.
    }
    return search;
}

void classify_search(const Verification& search, MutantResult& result) {
    result.killers = search.failed;
    result.found_after = search.found_after;
    if (search.end.exited_with(kViolation)) {
        const bool named = std::ranges::count(search.failed, result.mutant.killed_by) > 0;
        result.outcome = named ? MutantOutcome::killed : MutantOutcome::killed_by_another;
    } else if (search.end.exited_with(kConforms)) {
        result.outcome = MutantOutcome::survived;
    } else {
        result.outcome = search.end.how == ChildEnd::How::timed_out ? MutantOutcome::timed_out
                                                                    : MutantOutcome::crashed;
        result.note = tell(search.end);
    }
}

void classify(const Verification& named, const std::function<Verification()>& all,
              MutantResult& result) {
    if (named.end.exited_with(kViolation)) {
        result.outcome = MutantOutcome::killed;
        result.killers = {result.mutant.killed_by};
        return;
    }
    const Verification whole = all();
    result.killers = whole.failed;
    if (whole.end.exited_with(kViolation)) {
        result.outcome = MutantOutcome::killed_by_another;
    } else if (whole.end.exited_with(kConforms) || whole.end.exited_with(kInconclusive)) {
        result.outcome = MutantOutcome::survived;
    } else {
        result.outcome = whole.end.how == ChildEnd::How::timed_out ? MutantOutcome::timed_out
                                                                   : MutantOutcome::crashed;
        result.note = tell(whole.end);
    }
}

std::vector<MutantResult> run_mutants(const std::vector<Mutant>& mutants, const BuildTree& build,
                                      const MutantRunOptions& options) {
    const ChildGuard guard;
    const std::unique_ptr<TemporaryFolder> temporary =
        options.work_folder.empty() ? std::make_unique<TemporaryFolder>() : nullptr;
    const fs::path folder = temporary ? temporary->path() : options.work_folder;
    fs::create_directories(folder);
    return MutantRunner(mutants, build, options, folder).run();
}

}  // namespace zeroproof::harness
