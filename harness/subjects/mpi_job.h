// A command that runs as all ranks of an MPI job, and what they tell each other beside the cases.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collectives/mpi/mpi_world.h"

namespace zeroproof::harness {

// Every rank makes one and calls the collective ones in the same order. A rank of its own where no
// mpirun has started the process.
class MpiJob {
  public:
    // `timeout` is that of a wait within a case. Throws scenarios::BadInput where there is no MPI.
    explicit MpiJob(std::chrono::milliseconds timeout);

    int rank() const { return mpi_->world().rank(); }
    int ranks() const { return mpi_->world().size(); }
    collectives::MpiWorld& mpi() { return *mpi_; }

    // The first `ranks` ranks; null on the others. Collective.
    collectives::Communicator* first(int ranks);

    // What rank 0 says. Collective.
    std::string broadcast(std::string text);
    // On rank 0, what the first `ranks` ranks say; nothing on the others. For these ranks to call.
    std::vector<std::string> gather(const std::string& text, int ranks);

    // Of a rank other than 0 that cannot go on: tells rank 0, which ends the job.
    [[noreturn]] void give_up(const std::string& message);

  private:
    std::chrono::milliseconds timeout_;
    std::unique_ptr<collectives::MpiWorld> mpi_;
    std::unique_ptr<collectives::Communicator> messages_;
    std::map<int, std::unique_ptr<collectives::Communicator>> first_;  // by number of ranks
};

}  // namespace zeroproof::harness
