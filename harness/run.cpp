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

// The family whose cases show bytes and elements beside the formulas.
constexpr std::string_view kMeasuredFamily = "formulas";

class Runner {
  public:
    Runner(suites::Subject& subject, const std::vector<const Case*>& cases,
           const RunOptions& options)
        : subject_(subject),
          cases_(cases),
          options_(options),
          results_(cases.size()),
          measurements_(cases.size()),
          busy_since_(static_cast<std::size_t>(options.jobs)) {}

    void run(Record& record) {
        const auto began = Clock::now();
        {
            std::vector<std::jthread> workers;
            for (int job = 0; job < options_.jobs; ++job)
                workers.emplace_back([this, job] { work(static_cast<std::size_t>(job)); });
            watch();
        }
        if (error_) std::rethrow_exception(error_);
        for (std::size_t i = 0; i < cases_.size(); ++i) {
            // Neither those that an early end left out nor those that no asked-for clause judges.
            if (!results_[i].clauses.empty()) record.cases.push_back(std::move(results_[i]));
            if (measurements_[i]) record.measurements.push_back(*measurements_[i]);
        }
        record.seconds = std::chrono::duration<double>(Clock::now() - began).count();
    }

  private:
    struct Busy {
        const Case* c = nullptr;
        Clock::time_point since;
    };

    void work(std::size_t job) {
        for (std::size_t i; !stop_ && (i = next_++) < cases_.size();) {
            begin(job, *cases_[i]);
            try {
                results_[i] = run_case(*cases_[i], measurements_[i]);
            } catch (...) {
                const std::lock_guard lock(mutex_);
                error_ = std::current_exception();
                stop_ = true;
            }
            end(job, results_[i]);
        }
        const std::lock_guard lock(mutex_);
        ++ended_workers_;
        changed_.notify_all();
    }

    void begin(std::size_t job, const Case& c) {
        const std::lock_guard lock(mutex_);
        busy_since_[job] = {&c, Clock::now()};
    }

    void end(std::size_t job, const CaseResult& result) {
        const std::lock_guard lock(mutex_);
        busy_since_[job] = {};
        ++done_;
        for (const ClauseResult& clause : result.clauses)
            failures_ += clause.judgement.verdict == Verdict::fail;
        if (options_.stop_at_first_failure && failures_ > 0) stop_ = true;
        if (options_.progress) options_.progress(done_, cases_.size(), failures_);
    }

    void watch() {
        std::unique_lock lock(mutex_);
        while (ended_workers_ < options_.jobs) {
            changed_.wait_for(lock, std::chrono::milliseconds(200));
            for (const Busy& busy : busy_since_)
                if (busy.c != nullptr && Clock::now() - busy.since > 3 * options_.timeout) {
                    options_.stuck(fmt::format(
                        "{}: a rank computes without end, longer than three times the time-out of "
                        "{} ms; the run cannot go on. Run it alone: zeroproof verify --filter '{}'",
                        busy.c->id, options_.timeout.count(), busy.c->id));
                    std::abort();
                }
        }
    }

    CaseResult run_case(const Case& c, std::optional<Measurement>& measurement) {
        const auto began = Clock::now();
        CaseResult result;
        result.c = &c;
        std::vector<const suites::Clause*> clauses;
        for (const suites::Clause& clause : suites::all_clauses())
            if (clause.applies(c) && is_asked_for(clause)) clauses.push_back(&clause);
        if (clauses.empty()) return result;

        const suites::Evidence evidence = subject_.run(c, options_.timeout);
        result.status = evidence.status;
        result.message = evidence.message;
        suites::Evidence twin;
        if (!c.twin.empty()) twin = subject_.run(c.twin.front(), options_.timeout);
        const std::vector<suites::Expected> expected =
            c.transport ? std::vector<suites::Expected>{} : suites::expect(c);
        const suites::Context context{c, subject_.declaration(), evidence, expected,
                                      c.twin.empty() ? nullptr : &twin};
        for (const suites::Clause* clause : clauses)
            result.clauses.push_back({clause, suites::judge(*clause, context), {}});
        if (c.family == kMeasuredFamily && evidence.status == suites::RunStatus::completed)
            measurement = measure(c, subject_.declaration(), evidence);
        result.seconds = std::chrono::duration<double>(Clock::now() - began).count();
        return result;
    }

    bool is_asked_for(const suites::Clause& clause) const {
        return options_.clauses.empty() || std::ranges::count(options_.clauses, &clause) > 0;
    }

    suites::Subject& subject_;
    const std::vector<const Case*>& cases_;
    const RunOptions& options_;
    std::vector<CaseResult> results_;
    std::vector<std::optional<Measurement>> measurements_;
    std::atomic<std::size_t> next_ = 0;
    std::atomic<bool> stop_ = false;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Busy> busy_since_;
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
