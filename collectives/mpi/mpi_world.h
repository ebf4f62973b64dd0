// The MPI backend: each rank is a process that mpirun or srun has started.
//
// Beyond `Communicator`, and short of it:
//   - fp16 and bf16 are added in fp32, but rounded at each hop, and a mean of fp16 may overflow in
//     its sum; in which order ranks are added is left to MPI.
//   - Operations make progress only while their rank waits, for whatever of its operations.
//   - Ranks that disagree about an operation are not told so: MPI fails, or they wait until the
//     time-out.
//   - A failure is one of the whole rank: its operations throw from then on, and what it had in
//     flight is abandoned.
#pragma once

#include <chrono>
#include <climits>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

#include "collectives/communicator.h"

namespace zeroproof::collectives {

// A call of MPI failed, a wait timed out, or another rank has told of its end. Names the rank and
// the operation with its peer.
class MpiFailure : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// What a rank does that waits. `politely` is for nodes that share processors: from some tens of
// microseconds on it sleeps for a part of what it has waited already, and leaves the processor to
// whoever carries its messages.
enum class Waiting { busily, politely };

class MpiState;

// From MPI_Init to MPI_Finalize: at most one in the life of a process. Its communicators and their
// requests end before it. Calls come from one thread at a time.
//
// Its end waits for all other ranks, except after a failure or while an exception is under way.
// Then the owner calls `abort`: otherwise other ranks may wait for this one.
class MpiWorld {
  public:
    // Whether this build has MPI. In one that has not, the constructor throws MpiFailure and says
    // how to get it.
    static bool is_built_in();
    // Whether mpirun, srun or the like has started this process. Without, it is a world of its own.
    static bool was_launched();
    // "Open MPI 4.1.4"; empty if MPI is not built in. May be called before there is a world.
    static std::string library();

    // Collective. `timeout` is that of each wait. More than `largest_count` elements, or elements
    // of a block, go as one element of a derived type, as MPI's counts are int: tests set it lower.
    explicit MpiWorld(std::chrono::milliseconds timeout, int largest_count = INT_MAX);
    MpiWorld(const MpiWorld&) = delete;
    MpiWorld& operator=(const MpiWorld&) = delete;
    ~MpiWorld();

    // All ranks.
    Communicator& world();
    // All ranks again, whose operations never meet those of another communicator. Collective.
    std::unique_ptr<Communicator> duplicate(std::chrono::milliseconds timeout);
    int ranks_on_this_node() const;
    // Of all its communicators; at first it is busily.
    void wait_as(Waiting waiting);

    // Tells the other ranks that this one cannot go on: whoever waits for longer than a moment
    // throws MpiFailure "rank 2: MESSAGE", cut to a few hundred bytes. All further operations of
    // this rank throw. Does not wait.
    void announce_failure(const std::string& message);
    // Ends all ranks; `code` is the exit code that mpirun passes on.
    [[noreturn]] void abort(int code);

  private:
    std::shared_ptr<MpiState> state_;
    std::unique_ptr<Communicator> world_;
};

}  // namespace zeroproof::collectives
