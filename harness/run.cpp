#include "harness/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "harness/measure.h"
#include "suites/conformance/observed_gradients.h"

namespace zeroproof::harness {

namespace {

using Clock = std::chrono::steady_clock;

class Runner {
  public:
    Runner(suites::Subject& subject, const std::vector<const Case*>& cases,
           const RunOptions& options)
        : subject_(subject),
          cases_(cases),
          options_(options),
          results_(cases.size()),
          measurements_(cases.size()),
          busy_(static_cast<std::size_t>(options.jobs)),
          finished_(cases.size(), false) {}

    void run(Record& record) {
        if (subject_.runs_batches()) {
            run_batches();
        } else {
            std::vector<std::jthread> workers;
            for (int job = 0; job < options_.jobs; ++job)
                workers.emplace_back([this, job] { work(static_cast<std::size_t>(job)); });
            watch(record);
        }
        if (error_) std::rethrow_exception(error_);
        collect(record);
    }

  private:
    // What a batch runs: a case, or the twin of one.
    struct Place {
        std::size_t index;
        bool is_twin;
    };

    void run_batches() {
        std::vector<const Case*> all;
        std::vector<Place> places;
        std::vector<std::optional<suites::Evidence>> evidence(cases_.size());
        std::vector<std::optional<suites::Evidence>> twins(cases_.size());
        for (std::size_t i = 0; i < cases_.size(); ++i) {
            if (clauses_for(*cases_[i]).empty()) continue;
            all.push_back(cases_[i]);
            places.push_back({i, false});
            if (cases_[i]->twin.empty()) continue;
            all.push_back(&cases_[i]->twin.front());
            places.push_back({i, true});
        }
        auto since = Clock::now();
        subject_.run_batch(all, options_.timeout, [&](std::size_t at, suites::Evidence seen) {
            const auto [i, is_twin] = places[at];
            const Case& c = *cases_[i];
            (is_twin ? twins : evidence)[i] = std::move(seen);
            if (!evidence[i] || (!c.twin.empty() && !twins[i])) return true;
            CaseResult result = judged(c, *evidence[i], c.twin.empty() ? nullptr : &*twins[i]);
            result.seconds = std::chrono::duration<double>(Clock::now() - since).count();
            since = Clock::now();
            note_measurement(i, *evidence[i]);
            finish(i, std::move(result));
            evidence[i].emplace();
            twins[i].emplace();
            return !stop_;
        });
    }

    void note_measurement(std::size_t index, const suites::Evidence& evidence) {
        const Case& c = *cases_[index];
        if (c.measured && c.has(suites::ActionKind::step) &&
            evidence.status == suites::RunStatus::completed &&
            evidence.observed.has(suites::Observation::live_bytes) &&
            evidence.observed.has(suites::Observation::collectives))
            measurements_[index] = measure(c, evidence);
    }

    struct Busy {
        std::optional<std::size_t> index;  // of the case that the subject runs now
        Clock::duration since{};           // of awake_
    };

    // Takes what is finished: neither cases that an early end left out nor those that no clause
    // which was asked for judges.
    void collect(Record& record) {
        for (std::size_t i = 0; i < cases_.size(); ++i) {
            if (!finished_[i]) continue;
            if (!results_[i].clauses.empty()) record.cases.push_back(std::move(results_[i]));
            if (measurements_[i]) record.measurements.push_back(*measurements_[i]);
        }
        record.seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    }

    void work(std::size_t job) {
        for (std::size_t i; !stop_ && (i = next_++) < cases_.size();) {
            try {
                CaseResult result = run_case(job, i);
                finish(i, std::move(result));
            } catch (...) {
                const std::lock_guard lock(mutex_);
                error_ = std::current_exception();
                stop_ = true;
            }
        }
        const std::lock_guard lock(mutex_);
        ++ended_workers_;
        changed_.notify_all();
    }

    void finish(std::size_t index, CaseResult result) {
        const std::lock_guard lock(mutex_);
        for (const ClauseResult& clause : result.clauses)
            failures_ += clause.judgement.verdict == Verdict::fail;
        results_[index] = std::move(result);
        finished_[index] = true;
        ++done_;
        if (options_.stop_at_first_failure && failures_ > 0) stop_ = true;
        if (options_.progress) options_.progress(done_, cases_.size(), failures_);
    }

    // Until all workers have ended. A rank that computes without end cannot be ended, nor waited
    // for: its case fails, and the run ends with what it has.
    void watch(Record& record) {
        constexpr Clock::duration kTick = std::chrono::milliseconds(200);
        std::unique_lock lock(mutex_);
        auto last = Clock::now();
        while (ended_workers_ < options_.jobs) {
            changed_.wait_for(lock, kTick);
            // While the whole machine stands still nobody computes: that time does not count.
            awake_ += std::min(Clock::now() - last, 5 * kTick);
            last = Clock::now();
            for (const Busy& busy : busy_)
                if (busy.index && awake_ - busy.since > 3 * options_.timeout) {
                    results_[*busy.index] = stuck_result(*cases_[*busy.index]);
                    finished_[*busy.index] = true;
                    collect(record);
                    options_.stuck(record);
                    std::abort();
                }
        }
    }

    CaseResult stuck_result(const Case& c) const {
        suites::Evidence evidence;
        evidence.status = suites::RunStatus::failed;
        evidence.message = fmt::format(
            "a rank computes without end: three times the time-out of {} ms have passed. It cannot "
            "be ended, so the cases that were to come have not been run",
            options_.timeout.count());
        return judged(c, evidence, nullptr);
    }

    suites::Evidence run_subject(std::size_t job, std::size_t index, const Case& c) {
        const auto set_busy = [&](std::optional<std::size_t> running) {
            const std::lock_guard lock(mutex_);
            busy_[job] = {running, awake_};
        };
        set_busy(index);
        suites::Evidence evidence = subject_.run(c, options_.timeout);
        set_busy({});
        return evidence;
    }

    CaseResult run_case(std::size_t job, std::size_t index) {
        const Case& c = *cases_[index];
        const auto began = Clock::now();
        if (clauses_for(c).empty()) {
            CaseResult nothing;
            nothing.c = &c;
            return nothing;
        }
        const suites::Evidence evidence = run_subject(job, index, c);
        suites::Evidence twin;
        if (!c.twin.empty()) twin = run_subject(job, index, c.twin.front());
        CaseResult result = judged(c, evidence, c.twin.empty() ? nullptr : &twin);
        note_measurement(index, evidence);
        result.seconds = std::chrono::duration<double>(Clock::now() - began).count();
        return result;
    }

    CaseResult judged(const Case& c, const suites::Evidence& evidence,
                      const suites::Evidence* twin) const {
        CaseResult result;
        result.c = &c;
        result.status = evidence.status;
        result.message = evidence.message;
        std::vector<suites::Expected> expected;
        if (!c.transport && evidence.status == suites::RunStatus::completed)
            expected = suites::expect_after(c, subject_.declaration().meanings, evidence);
        const suites::Context context{c, subject_.declaration(), evidence, expected, twin};
        for (const suites::Clause* clause : clauses_for(c))
            result.clauses.push_back({clause, suites::judge(*clause, context), {}});
        return result;
    }

    std::vector<const suites::Clause*> clauses_for(const Case& c) const {
        std::vector<const suites::Clause*> clauses;
        for (const suites::Clause& clause : suites::all_clauses())
            if (clause.applies(c) && is_asked_for(clause)) clauses.push_back(&clause);
        return clauses;
    }

    bool is_asked_for(const suites::Clause& clause) const {
        return options_.clauses.empty() || std::ranges::count(options_.clauses, &clause) > 0;
    }

    suites::Subject& subject_;
    const std::vector<const Case*>& cases_;
    const RunOptions& options_;
    std::vector<CaseResult> results_;
    std::vector<std::optional<Measurement>> measurements_;
    const Clock::time_point began_ = Clock::now();
    std::atomic<std::size_t> next_ = 0;
    std::atomic<bool> stop_ = false;

    std::mutex mutex_;
    std::condition_variable changed_;
    Clock::duration awake_{};  // how long it has been watched
    std::vector<Busy> busy_;   // by worker
    std::vector<bool> finished_;
    int ended_workers_ = 0;
    std::size_t done_ = 0;
    std::size_t failures_ = 0;
    std::exception_ptr error_;
};

}  // namespace

void run(suites::Subject& subject, const std::vector<const Case*>& cases, const RunOptions& options,
         Record& record) {
    Runner(subject, cases, options).run(record);
}

}  // namespace zeroproof::harness
