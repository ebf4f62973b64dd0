#include "harness/subjects/process_subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "harness/process/child.h"
#include "harness/protocol/case_document.h"
#include "harness/protocol/joined_evidence.h"
#include "harness/temporary_folder.h"
#include "harness/writers/text.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {

namespace {

using Clock = std::chrono::steady_clock;
using suites::Case;
using suites::Evidence;
using suites::RunStatus;

// A program that never comes to results is not started for ever.
constexpr int kMostVainLaunches = 10;

// The last lines that a command printed; what it says of itself is shortened, never trusted.
std::string last_words(const std::filesystem::path& output) {
    constexpr std::streamoff kMost = 2000;
    std::ifstream file(output, std::ios::binary);
    file.seekg(0, std::ios::end);
    const std::streamoff size = file.tellg();
    file.seekg(std::max<std::streamoff>(0, size - kMost));
    std::string text(static_cast<std::size_t>(std::min(std::max<std::streamoff>(size, 0), kMost)),
                     '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text.empty() ? "it printed nothing" : "its last words: " + text;
}

std::string how(const ChildEnd& end) {
    switch (end.how) {
        case ChildEnd::How::exited: return fmt::format("ended with exit code {}", end.code);
        case ChildEnd::How::signalled:
            return fmt::format("was ended by signal {} ({})", end.code, strsignal(end.code));
        case ChildEnd::How::timed_out: break;
    }
    return "was ended";
}

// {"environment": ..., "install": ...}, as the last line that a launcher prints when it cannot run.
std::optional<std::string> environment_of(const std::filesystem::path& output) {
    std::ifstream file(output);
    std::string line;
    for (std::string next; std::getline(file, next);)
        if (!next.empty()) line = next;
    const auto json = scenarios::Json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("environment") || !json["environment"].is_string())
        return {};
    std::string text = json["environment"].get<std::string>();
    if (json.contains("install") && json["install"].is_string())
        text += "; install it: " + json["install"].get<std::string>();
    return text;
}

std::string without_local_part(const std::string& version) {
    return version.substr(0, version.find('+'));
}

// A case on its way: its parts are run in different launches.
struct Job {
    std::size_t index;  // of the case
    const Case* c;
    std::vector<ProgramPart> parts;
    Evidence evidence;
    bool ended = false;
};

class Batch {
  public:
    Batch(const ProcessOptions& options, const std::vector<const Case*>& cases,
          std::chrono::milliseconds timeout, const suites::Subject::Deliver& deliver)
        : options_(options), timeout_(timeout), deliver_(deliver) {
        for (std::size_t i = 0; i < cases.size(); ++i) {
            Job& job = jobs_.emplace_back();
            job.index = i;
            job.c = cases[i];
            job.parts = parts_of(*cases[i], folder_.path() / fmt::format("saved-{}", i));
        }
    }

    void run() {
        for (std::size_t round = 0; round < 2; ++round) {
            std::map<int, std::vector<Job*>> by_ranks;
            for (Job& job : jobs_)
                if (!job.ended && round < job.parts.size())
                    by_ranks[job.parts[round].ranks].push_back(&job);
            for (auto& [ranks, jobs] : by_ranks) run_all(ranks, std::move(jobs), round);
        }
    }

  private:
    // Launches until every job has ended in one way or another.
    void run_all(int ranks, std::vector<Job*> jobs, std::size_t round) {
        int vain = 0;
        while (!jobs.empty() && !stopped_) {
            const std::size_t before = jobs.size();
            completed_any_ = false;
            const bool could_start = launch(ranks, jobs, round);
            vain = completed_any_ ? 0 : vain + 1;
            if (!could_start || jobs.size() == before) return;
            if (vain < kMostVainLaunches) continue;
            for (Job* job : jobs)
                end(*job, without_run(RunStatus::adapter_failed,
                                      fmt::format("not started: {} launches in a row ended without "
                                                  "completing a case",
                                                  vain)));
            return;
        }
    }

    // Runs from the first job on, and takes off those that have ended. False if nothing can be
    // started at all: all jobs have ended for that reason.
    bool launch(int ranks, std::vector<Job*>& jobs, std::size_t round) {
        const TemporaryFolder folder;
        const auto cases = folder.path() / "cases";
        const auto results = folder.path() / "results";
        const auto output = folder.path() / "output";
        std::filesystem::create_directory(cases);
        std::filesystem::create_directory(results);
        std::vector<PartOfCase> parts;
        for (Job* job : jobs) parts.push_back({job->c, job->parts[round], parts.size()});
        write_cases(cases, ranks, parts);
        if (options_.progress)
            options_.progress(fmt::format("starting {} on {} for {}", options_.declaration.name,
                                          counted(static_cast<std::size_t>(ranks), "rank"),
                                          counted(jobs.size(), "case")));

        const Launch how_to = options_.launch(ranks, cases, results);
        std::optional<Child> child;
        try {
            child.emplace(how_to.arguments, std::filesystem::current_path(), output,
                          how_to.variables);
        } catch (const std::system_error& error) {
            abandon(jobs, error.what());
            return false;
        }
        std::size_t next = 0;
        bool ready = false;
        auto since = Clock::now();
        auto pause = std::chrono::milliseconds(1);
        while (next < jobs.size() && !stopped_) {
            const auto ended = child->poll();
            std::string unfit;
            if (!ready && all_are_ready(results, ranks, unfit)) {
                ready = true;
                since = Clock::now();
            }
            if (!unfit.empty()) {
                child->kill();
                abandon(jobs, unfit);
                return false;
            }
            const std::size_t before = next;
            while (ready && next < jobs.size() && all_have_finished(results, parts[next]) &&
                   !stopped_) {
                finish(*jobs[next], collect(results, parts[next]), round);
                ++next;
            }
            if (next > before) {
                since = Clock::now();
                pause = std::chrono::milliseconds(1);
                continue;
            }
            if (ended) {
                // A rank that has told of its failure may end: the next case has not begun.
                if (next > 0 && jobs[next - 1]->evidence.status == RunStatus::failed) break;
                if (!ready && next == 0) {
                    const auto environment = environment_of(output);
                    abandon(jobs, environment
                                      ? *environment
                                      : fmt::format("the command {} before it was ready; {}",
                                                    how(*ended), last_words(output)));
                    return false;
                }
                end(*jobs[next], broken_off(results, parts[next],
                                            fmt::format("the command {} in this case; {}",
                                                        how(*ended), last_words(output))));
                ++next;
                break;
            }
            if (Clock::now() - since > (ready ? timeout_ : options_.startup_timeout)) {
                child->kill();
                const auto seconds =
                    std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - since);
                if (!ready) {
                    abandon(jobs, fmt::format("not ready within {} s; {}", seconds.count(),
                                              last_words(output)));
                    return false;
                }
                end(*jobs[next],
                    broken_off(results, parts[next],
                               fmt::format("no result within {} s, so all its processes were "
                                           "ended; {}",
                                           seconds.count(), last_words(output))));
                ++next;
                break;
            }
            std::this_thread::sleep_for(pause);
            pause = std::min(2 * pause, std::chrono::milliseconds(10));
        }
        jobs.erase(jobs.begin(), jobs.begin() + static_cast<std::ptrdiff_t>(next));
        return true;
    }

    // None of the jobs can be run here.
    void abandon(std::vector<Job*>& jobs, std::string why) {
        if (!options_.if_it_cannot_start.empty()) why += "; " + options_.if_it_cannot_start;
        for (Job* job : jobs) end(*job, without_run(RunStatus::environment, why));
    }

    // `unfit` says what is wrong with a rank that is ready.
    bool all_are_ready(const std::filesystem::path& results, int ranks, std::string& unfit) const {
        try {
            for (int rank = 0; rank < ranks; ++rank) {
                const auto ready = read_ready(results, rank);
                if (!ready) return false;
                const std::string& wanted = options_.declaration.version;
                if (wanted.empty() || options_.any_version ||
                    without_local_part(ready->version) == wanted)
                    continue;
                unfit = fmt::format(
                    "version {} of {} is installed, and its declaration is for {}: install that, "
                    "or judge by it all the same with --any-version",
                    printable(ready->version), options_.declaration.name, wanted);
                return false;
            }
            return true;
        } catch (const scenarios::BadInput& error) {
            unfit = error.what();
            return false;
        }
    }

    static bool all_have_finished(const std::filesystem::path& results, const PartOfCase& part) {
        for (int rank = 0; rank < part.part.ranks; ++rank)
            if (!has_finished(results, part, rank)) return false;
        return true;
    }

    static Evidence collect(const std::filesystem::path& results, const PartOfCase& part) {
        try {
            std::vector<RankResult> ranks;
            for (int rank = 0; rank < part.part.ranks; ++rank)
                ranks.push_back(read_evidence(results, part, rank));
            return joined(part, std::move(ranks));
        } catch (const scenarios::BadInput& error) {
            return without_run(RunStatus::adapter_failed, error.what());
        }
    }

    // What a rank has said before the command ended, or else how it ended.
    static Evidence broken_off(const std::filesystem::path& results, const PartOfCase& part,
                               std::string message) {
        for (int rank = 0; rank < part.part.ranks; ++rank) try {
                if (!has_finished(results, part, rank)) continue;
                const RankResult result = read_evidence(results, part, rank);
                if (result.status == RunStatus::failed)
                    return without_run(RunStatus::failed,
                                       fmt::format("rank {}: {}", rank, result.message));
            } catch (const scenarios::BadInput& error) {
                return without_run(RunStatus::adapter_failed, error.what());
            }
        return without_run(RunStatus::failed, std::move(message));
    }

    void finish(Job& job, Evidence part, std::size_t round) {
        if (part.status == RunStatus::completed) completed_any_ = true;
        if (round == 0) {
            job.evidence = std::move(part);
        } else {
            job.evidence.status = part.status;
            job.evidence.message = std::move(part.message);
            job.evidence.observed.keep_common(part.observed);
            for (suites::Segment& segment : part.segments)
                job.evidence.segments.push_back(std::move(segment));
            // Each launch refuses before work of its own: it knows nothing of the one before.
            if (part.status == RunStatus::rejected) job.evidence.segments.clear();
        }
        const bool is_last = round + 1 == job.parts.size();
        if (is_last || job.evidence.status != RunStatus::completed) end(job, job.evidence);
    }

    void end(Job& job, Evidence evidence) {
        job.ended = true;
        job.evidence.status = evidence.status;
        if (!deliver_(job.index, std::move(evidence))) stopped_ = true;
        job.evidence.segments.clear();
    }

    const ProcessOptions& options_;
    std::chrono::milliseconds timeout_;
    const suites::Subject::Deliver& deliver_;
    TemporaryFolder folder_;
    std::vector<Job> jobs_;
    bool stopped_ = false;
    bool completed_any_ = false;  // of the cases of a launch
};

class ProcessSubject : public suites::Subject {
  public:
    explicit ProcessSubject(ProcessOptions options) : options_(std::move(options)) {}

    const suites::Declaration& declaration() const override { return options_.declaration; }

    Evidence run(const Case& c, std::chrono::milliseconds timeout) override {
        Evidence result;
        run_batch({&c}, timeout, [&](std::size_t, Evidence evidence) {
            result = std::move(evidence);
            return true;
        });
        return result;
    }

    bool runs_batches() const override { return true; }

    void run_batch(const std::vector<const Case*>& cases, std::chrono::milliseconds timeout,
                   const Deliver& deliver) override {
        const ChildGuard guard;
        Batch(options_, cases, timeout, deliver).run();
    }

  private:
    ProcessOptions options_;
};

}  // namespace

std::unique_ptr<suites::Subject> make_process_subject(ProcessOptions options) {
    return std::make_unique<ProcessSubject>(std::move(options));
}

Launch shell_launch(const std::string& command, int ranks, const std::string& cases,
                    const std::string& results) {
    std::string line = command;
    const auto replace = [&](const std::string& name, const std::string& value) {
        if (command.find(name) == std::string::npos)
            throw scenarios::BadInput(fmt::format(
                "--run \"{}\" does not hold {}; expected such as \"torchrun --nproc-per-node "
                "{{ranks}} my_adapter.py {{cases}} {{results}}\"",
                command, name));
        for (std::size_t at = line.find(name); at != std::string::npos;
             at = line.find(name, at + value.size()))
            line.replace(at, name.size(), value);
    };
    replace("{ranks}", std::to_string(ranks));
    replace("{cases}", shell_quoted(cases));
    replace("{results}", shell_quoted(results));
    return {{"/bin/sh", "-c", line}, {}};
}

}  // namespace zeroproof::harness
