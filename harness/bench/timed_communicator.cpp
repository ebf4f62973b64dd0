#include "harness/bench/timed_communicator.h"

#include <utility>

namespace zeroproof::harness {

namespace {

// Adds the time until its end.
class Stopwatch {
  public:
    explicit Stopwatch(double& seconds) : seconds_(seconds) {}
    Stopwatch(const Stopwatch&) = delete;
    Stopwatch& operator=(const Stopwatch&) = delete;
    ~Stopwatch() {
        seconds_ +=
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    }

  private:
    double& seconds_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

class TimedWork : public collectives::Work {
  public:
    TimedWork(collectives::Request request, double& seconds)
        : request_(std::move(request)), seconds_(seconds) {}
    ~TimedWork() override {
        const Stopwatch stopwatch(seconds_);
        const collectives::Request ended = std::move(request_);
    }
    void wait() override {
        const Stopwatch stopwatch(seconds_);
        request_.wait();
    }

  private:
    collectives::Request request_;
    double& seconds_;
};

}  // namespace

collectives::Request TimedCommunicator::start(const collectives::Operation& operation) {
    const Stopwatch stopwatch(seconds_);
    return collectives::Request(std::make_unique<TimedWork>(inner_->start(operation), seconds_));
}

std::unique_ptr<collectives::Communicator> TimedCommunicator::split(int color, int key) {
    auto group = inner_->split(color, key);
    if (!group) return nullptr;
    return std::make_unique<TimedCommunicator>(std::move(group), seconds_);
}

}  // namespace zeroproof::harness
