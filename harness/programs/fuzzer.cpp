#include "harness/programs/fuzzer.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <future>

#include "harness/process/child.h"
#include "harness/programs/decidable.h"
#include "harness/programs/shrinker.h"
#include "harness/run.h"

namespace zeroproof::harness {

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;
using suites::Clause;
using suites::Evidence;
using suites::RunStatus;

constexpr std::size_t kShrunkTogether = 6;     // of a clause
constexpr std::size_t kMostShrunk = 40;        // of a clause
constexpr std::size_t kMostCandidates = 1500;  // of one failure
constexpr std::size_t kMostHarnessErrors = 10;
// At a time, and in all if the whole run is not longer.
constexpr Seconds kShrinking{30};
// A launch takes many seconds, and there are some in a round of shrinking.
constexpr Seconds kShrinkingInBatches{240};

// A subject that takes no further case once the time is up.
class UntilDeadline : public suites::Subject {
  public:
    explicit UntilDeadline(suites::Subject& subject) : subject_(subject) {}
    void set(Clock::time_point deadline) { deadline_ = deadline; }

    const suites::Declaration& declaration() const override { return subject_.declaration(); }
    Evidence run(const Case& c, std::chrono::milliseconds timeout) override {
        return subject_.run(c, timeout);
    }
    bool runs_batches() const override { return subject_.runs_batches(); }
    void run_batch(const std::vector<const Case*>& cases, std::chrono::milliseconds timeout,
                   const Deliver& deliver) override {
        subject_.run_batch(cases, timeout, [&](std::size_t index, Evidence evidence) {
            return deliver(index, std::move(evidence)) && Clock::now() < deadline_;
        });
    }

  private:
    suites::Subject& subject_;
    Clock::time_point deadline_ = Clock::time_point::max();
};

struct Failure {
    Failure(const CaseResult& failed, const Clause* root, double after)
        : c(*failed.c), result(failed), clause(root), found_after(after) {}

    Case c;
    CaseResult result;
    const Clause* clause;
    double found_after;
};

// Without shrinking.
Finding as_it_is(const Failure& failure) {
    Finding finding;
    finding.smallest = std::make_unique<Case>(failure.c);
    finding.result = failure.result;
    finding.result.c = finding.smallest.get();
    finding.clause = failure.clause;
    finding.program = program_number(failure.c);
    finding.found_after = failure.found_after;
    finding.is_minimal = false;
    return finding;
}

class Fuzzer {
  public:
    Fuzzer(suites::Subject& subject, const FuzzRun& options)
        : subject_(subject),
          options_(options),
          deadline_(began_ + std::chrono::duration_cast<Clock::duration>(options.time)),
          programs_in_round_(subject.runs_batches() ? 80 : 64) {}

    FuzzRecord run() {
        try {
            if (options_.only)
                run_round({random_case(options_.space, options_.seed, *options_.only)});
            else
                run_rounds();
        } catch (const Interrupted&) {
            record_.interrupted = true;
        }
        std::ranges::stable_sort(record_.groups, std::greater(), &FindingGroup::programs);
        record_.seconds = seconds();
        return std::move(record_);
    }

  private:
    void run_rounds() {
        std::uint64_t next = 0;
        auto coming = generate(next);
        do {
            const std::deque<Case> round = coming.get();
            next += round.size();
            coming = generate(next);
            if (!run_round(round)) break;
        } while (Clock::now() < deadline_ && !(options_.stop_at_first && record_.failing > 0));
    }

    double seconds() const { return Seconds(Clock::now() - began_).count(); }

    // While the round before runs.
    std::future<std::deque<Case>> generate(std::uint64_t first) {
        return std::async(std::launch::async, [this, first, count = programs_in_round_] {
            std::deque<Case> cases;
            for (std::uint64_t k = first; k < first + count; ++k)
                cases.push_back(random_case(options_.space, options_.seed, k));
            return cases;
        });
    }

    // Whether to go on.
    bool run_round(const std::deque<Case>& cases) {
        const double before = seconds();
        std::vector<const Case*> pointers;
        for (const Case& c : cases) pointers.push_back(&c);
        double failed_at = 0;
        subject_.set(deadline_);
        const Record record = judge(pointers, {}, options_.stop_at_first,
                                    [&](std::size_t done, std::size_t failures) {
                                        if (failures > 0 && failed_at == 0) failed_at = seconds();
                                        tell(done, failures > 0 ? 1 : 0, {});
                                    });
        const double took = seconds() - before;
        record_.running_seconds += took;
        adapt(pointers.size(), took);

        std::vector<Failure> failures;
        const std::size_t not_run_before = record_.not_run;
        for (const CaseResult& result : record.cases) {
            ++record_.programs;
            const Clause* clause = note(result) ? root_failure(result) : nullptr;
            if (clause == nullptr) continue;
            if (!record_.first_failure_after) record_.first_failure_after = failed_at;
            failures.emplace_back(result, clause, failed_at);
        }
        record_.failing += failures.size();
        take(std::move(failures));
        return record.cases.empty() || record_.not_run - not_run_before < record.cases.size();
    }

    // Half a second, or several launches worth while.
    void adapt(std::size_t programs, double took) {
        const bool batches = subject_.runs_batches();
        const double wanted = batches ? std::clamp(options_.time.count() / 4, 15.0, 90.0) : 0.5;
        const double by_time = static_cast<double>(programs) * wanted / std::max(took, 0.001);
        programs_in_round_ =
            static_cast<std::size_t>(std::clamp(by_time, 32.0, batches ? 800.0 : 2000.0));
    }

    // Whether anything is to be said of it.
    bool note(const CaseResult& result) {
        if (result.status == RunStatus::rejected) ++record_.rejected;
        if (result.status == RunStatus::environment || result.status == RunStatus::adapter_failed) {
            if (record_.not_run++ == 0) record_.not_run_because = result.message;
            return false;
        }
        for (const ClauseResult& one : result.clauses) {
            const Verdict verdict = one.judgement.verdict;
            if (verdict == Verdict::pass || verdict == Verdict::fail ||
                verdict == Verdict::deviates)
                ++record_.judged[one.clause->name];
            if (verdict == Verdict::harness_error &&
                record_.harness_errors.size() < kMostHarnessErrors)
                record_.harness_errors.push_back(fmt::format("{} of {}: {}", one.clause->name,
                                                             result.c->id, one.judgement.note));
        }
        return true;
    }

    using Progress = std::function<void(std::size_t done, std::size_t failures)>;
    Record judge(const std::vector<const Case*>& cases, const std::vector<const Clause*>& clauses,
                 bool stop_at_first, const Progress& progress) {
        RunOptions options;
        options.jobs = options_.jobs;
        options.timeout = options_.timeout;
        options.clauses = clauses;
        options.stop_at_first_failure = stop_at_first;
        options.progress = [&](std::size_t done, std::size_t, std::size_t failures) {
            if (progress) progress(done, failures);
        };
        options.stuck = [&](const Record& unfinished) { be_stuck(unfinished); };
        Record record;
        harness::run(subject_, cases, options, record);
        return record;
    }

    // A rank computes without end: nothing can be run after that. While others were shrunk, they
    // and their candidates are told as they are.
    void be_stuck(const Record& unfinished) {
        if (!is_shrinking_) record_.programs += unfinished.cases.size();
        for (const CaseResult& result : unfinished.cases) {
            const Clause* clause = root_failure(result);
            if (clause == nullptr) continue;
            if (!is_shrinking_) ++record_.failing;
            if (!record_.first_failure_after) record_.first_failure_after = seconds();
            add_finding(record_.groups, as_it_is({result, clause, seconds()}));
        }
        record_.seconds = seconds();
        if (options_.stuck) options_.stuck(record_);
    }

    // Shrinks some of each clause; of the others those that cannot be the same.
    void take(std::vector<Failure> failures) {
        std::stable_partition(failures.begin(), failures.end(),
                              [this](const Failure& one) { return !is_costly(one); });
        while (!failures.empty()) {
            std::vector<Failure> now;
            std::vector<Failure> later;
            std::map<const Clause*, std::size_t> taken;
            for (Failure& failure : failures) {
                if (FindingGroup* group = group_like(record_.groups, *failure.clause, failure.c)) {
                    ++group->programs;
                } else if (shrunk_[failure.clause] >= (may_shrink() ? kMostShrunk : 1)) {
                    ++record_.not_shrunk[failure.clause->name];
                } else if (taken[failure.clause] < kShrunkTogether && may_join(now, failure)) {
                    ++taken[failure.clause];
                    ++shrunk_[failure.clause];
                    now.push_back(std::move(failure));
                } else {
                    later.push_back(std::move(failure));
                }
            }
            if (!now.empty()) {
                try {
                    shrink(now);
                } catch (const Interrupted&) {
                    for (const Failure& failure : now)
                        add_finding(record_.groups, as_it_is(failure));
                    throw;
                }
            }
            failures = std::move(later);
        }
    }

    // What ends a command costs a launch whenever it fails again: that is shrunk by itself, and
    // each round ends with the first that fails.
    bool is_costly(const Failure& failure) const {
        return subject_.runs_batches() && failure.result.status == RunStatus::failed;
    }
    bool may_join(const std::vector<Failure>& others, const Failure& failure) const {
        return others.empty() || (!is_costly(failure) && !is_costly(others.front()));
    }

    bool may_shrink() const {
        return options_.shrink && shrinking_ < std::max(time_to_shrink(), options_.time);
    }
    Seconds time_to_shrink() const {
        return options_.shrinking_time.value_or(subject_.runs_batches() ? kShrinkingInBatches
                                                                        : kShrinking);
    }

    void shrink(const std::vector<Failure>& failures) {
        const auto since = Clock::now();
        const auto until = since + std::chrono::duration_cast<Clock::duration>(
                                       may_shrink() ? time_to_shrink() : Seconds(0));
        std::vector<Shrinker> shrinkers;
        std::vector<const Clause*> clauses;
        for (const Failure& failure : failures) {
            shrinkers.emplace_back(
                failure.c, [this](Case& candidate) { return is_usable(candidate); },
                kMostCandidates);
            if (std::ranges::count(clauses, failure.clause) == 0) clauses.push_back(failure.clause);
        }
        is_shrinking_ = true;
        bool is_cut_off = false;
        for (std::size_t round = 0; Clock::now() < until; ++round) {
            subject_.set(until);
            std::vector<std::vector<Case>> asked;
            std::vector<const Case*> all;
            for (Shrinker& shrinker : shrinkers) {
                asked.push_back(shrinker.candidates());
                for (const Case& c : asked.back()) all.push_back(&c);
            }
            if (all.empty()) break;
            tell(0, 0,
                 fmt::format("shrinking {}, round {}, {} candidates", failures.size(), round + 1,
                             all.size()));
            const Record record = judge(all, clauses, is_costly(failures.front()), {});
            is_cut_off = Clock::now() >= until;  // then some of them have not been run
            std::map<const Case*, const CaseResult*> by_case;
            for (const CaseResult& result : record.cases) by_case[result.c] = &result;
            for (std::size_t i = 0; i < shrinkers.size(); ++i) {
                if (asked[i].empty()) continue;
                std::vector<bool> fails;
                for (const Case& c : asked[i]) {
                    const auto at = by_case.find(&c);
                    fails.push_back(at != by_case.end() && has_failed(*at->second, failures[i]));
                }
                shrinkers[i].tell(fails);
            }
        }
        conclude(failures, shrinkers, is_cut_off);
        is_shrinking_ = false;
        shrinking_ += Clock::now() - since;
    }

    static bool has_failed(const CaseResult& result, const Failure& failure) {
        return std::ranges::any_of(result.clauses, [&](const ClauseResult& one) {
            return one.clause == failure.clause && one.judgement.verdict == Verdict::fail;
        });
    }

    bool is_usable(Case& candidate) const {
        const suites::Declaration& declaration = options_.space.declaration;
        auto read = legal(candidate);
        if (!read || !decidable(*read, declaration) ||
            !outside_declaration(*read, declaration).empty())
            return false;
        candidate = std::move(*read);
        return true;
    }

    // The smallest of each once more, with all clauses.
    void conclude(const std::vector<Failure>& failures, const std::vector<Shrinker>& shrinkers,
                  bool is_cut_off) {
        std::vector<Finding> findings;
        std::vector<const Case*> cases;
        for (std::size_t i = 0; i < failures.size(); ++i) {
            Finding& finding = findings.emplace_back();
            finding.smallest = std::make_unique<Case>(shrinkers[i].smallest());
            finding.smallest->id += fmt::format(",{}", failures[i].clause->name);
            finding.clause = failures[i].clause;
            finding.program = program_number(failures[i].c);
            finding.found_after = failures[i].found_after;
            finding.is_minimal = shrinkers[i].is_minimal() && !is_cut_off;
            cases.push_back(finding.smallest.get());
        }
        subject_.set(Clock::time_point::max());
        Record record = judge(cases, {}, false, {});
        for (Finding& finding : findings) {
            const auto at = std::ranges::find(record.cases, finding.smallest.get(), &CaseResult::c);
            if (at != record.cases.end()) finding.result = std::move(*at);
            finding.result.c = finding.smallest.get();
            finding.fails_again = finding.failure() != nullptr;
            add_finding(record_.groups, std::move(finding));
        }
    }

    void tell(std::size_t programs, std::size_t failing, std::string doing) const {
        if (options_.progress)
            options_.progress({record_.programs + programs, record_.failing + failing,
                               record_.groups.size(), std::move(doing)});
    }

    UntilDeadline subject_;
    const FuzzRun& options_;
    const Clock::time_point began_ = Clock::now();
    const Clock::time_point deadline_;
    std::size_t programs_in_round_;
    std::map<const Clause*, std::size_t> shrunk_;
    Seconds shrinking_{0};
    bool is_shrinking_ = false;
    FuzzRecord record_;
};

}  // namespace

FuzzRecord fuzz(suites::Subject& subject, const FuzzRun& options) {
    return Fuzzer(subject, options).run();
}

int exit_code(const FuzzRecord& record) {
    if (!record.harness_errors.empty()) return 5;
    if (record.failing > 0) return 1;
    return record.not_run > 0 || record.programs == 0 ? 4 : 0;
}

}  // namespace zeroproof::harness
