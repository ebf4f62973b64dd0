// A thread that carries out one rank's operations while the rank computes.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "collectives/communicator.h"

namespace zeroproof::collectives {

// Jobs are done one at a time, in the order in which they were begun. All groups of a rank that use
// one Progress must therefore begin their operations in an order on which their ranks agree, as
// NCCL asks of its users too.
class Progress {
  public:
    Progress();
    // Waits for what was begun.
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    // Waiting for it throws what the job threw. After a job that threw, the later ones throw the
    // same without being done: what they would wait for may never come.
    Request begin(std::function<void()> job);
    // Returns once all that was begun is done.
    void drain();

  private:
    struct Job;
    class JobWork;

    void work(std::stop_token stop);

    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<std::shared_ptr<Job>> jobs_;  // the first is being done
    std::exception_ptr failure_;
    std::jthread thread_;  // last: it uses the others
};

}  // namespace zeroproof::collectives
