#include "collectives/algorithms/progress.h"

#include <utility>

namespace zeroproof::collectives {

struct Progress::Job {
    std::function<void()> run;
    bool done = false;
    std::exception_ptr failure;
};

class Progress::JobWork : public Work {
  public:
    JobWork(Progress& progress, std::shared_ptr<Job> job)
        : progress_(progress), job_(std::move(job)) {}
    ~JobWork() override {
        if (job_) await();
    }
    void wait() override {
        await();
        if (const auto job = std::move(job_); job->failure) std::rethrow_exception(job->failure);
    }

  private:
    void await() {
        std::unique_lock lock(progress_.mutex_);
        progress_.changed_.wait(lock, [&] { return job_->done; });
    }

    Progress& progress_;
    std::shared_ptr<Job> job_;
};

Progress::Progress() : thread_([this](std::stop_token stop) { work(std::move(stop)); }) {}

Progress::~Progress() {
    drain();
}

Request Progress::begin(std::function<void()> job) {
    auto entry = std::make_shared<Job>();
    entry->run = std::move(job);
    {
        const std::lock_guard lock(mutex_);
        jobs_.push_back(entry);
    }
    changed_.notify_all();
    return Request(std::make_unique<JobWork>(*this, std::move(entry)));
}

void Progress::drain() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return jobs_.empty(); });
}

void Progress::work(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [&] { return !jobs_.empty(); })) {
        const std::shared_ptr<Job> job = jobs_.front();
        job->failure = failure_;
        if (!job->failure) {
            lock.unlock();
            try {
                job->run();
            } catch (...) {
                job->failure = std::current_exception();
            }
            lock.lock();
            failure_ = job->failure;
        }
        job->done = true;
        jobs_.pop_front();
        changed_.notify_all();
    }
}

}  // namespace zeroproof::collectives
