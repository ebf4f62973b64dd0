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
        {
            std::vector<std::jthread> workers;
            for (int job = 0; job < options_.jobs; ++job)
                workers.emplace_back([this, job] { work(static_cast<std::size_t>(job)); });
            watch(record);
        }
        if (error_) std::rethrow_exception(error_);
        collect(record);
    }

  private:
    struct Busy {
        std::optional<std::size_t> index;  // of the case that the subject runs now
        Clock::time_point since;
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
        std::unique_lock lock(mutex_);
        while (ended_workers_ < options_.jobs) {
            changed_.wait_for(lock, std::chrono::milliseconds(200));
            for (const Busy& busy : busy_)
                if (busy.index && Clock::now() - busy.since > 3 * options_.timeout) {
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
        const auto set_busy = [&](Busy busy) {
            const std::lock_guard lock(mutex_);
            busy_[job] = busy;
        };
        set_busy({index, Clock::now()});
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
        const bool steps =
            std::ranges::count(c.program, suites::ActionKind::step, &suites::Action::kind) > 0;
        if (c.measured && steps && evidence.status == suites::RunStatus::completed)
            measurements_[index] = measure(c, evidence);
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
            expected = suites::expect(c);
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
    std::vector<Busy> busy_;  // by worker
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
