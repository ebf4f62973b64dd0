// The embedded backend: the ranks are threads of one process and read each other's memory.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectives/communicator.h"

namespace zeroproof::collectives {

// Why a world of ranks could not go on.
enum class FailureKind {
    rank_threw,    // a rank ended with an exception of its own
    disagreement,  // ranks started different operations at the same place of a group's sequence
    deadlock,      // every rank waits or has ended, and none can go on
    timeout        // a rank waited longer than the time-out
};

struct WorldFailure {
    FailureKind kind;
    std::string message;                  // names the ranks, and what each waits for
    std::exception_ptr rank_exception{};  // of the first rank that threw, if one did
};

// Thrown out of every rank's operations once the world has failed.
class WorldFailed : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

class ThreadWorldState;

// `ranks` threads that communicate through shared memory. Waiting blocks, it does not spin.
// Results do not depend on timing: ranks are reduced in ascending order.
//
// An operation runs once all its ranks have started it, by whichever of them wait (a small one, by
// the last that starts it), so it makes progress while a rank computes between start and wait.
class ThreadWorld {
  public:
    ThreadWorld(int ranks, std::chrono::milliseconds timeout);
    ~ThreadWorld();

    // Runs `body` once on each rank, in a thread of its own, and returns when all have ended. Once
    // only. A failure ends every rank at its next operation.
    std::unique_ptr<WorldFailure> run(const std::function<void(Communicator&)>& body);

  private:
    std::shared_ptr<ThreadWorldState> state_;
};

}  // namespace zeroproof::collectives
