// A communicator of MPI.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "collectives/communicator.h"
#include "collectives/mpi/mpi_state.h"

namespace zeroproof::collectives {

// An MPI communicator and its owner: freed with the last that holds it, be it an operation.
struct MpiGroup {
    std::shared_ptr<MpiState> state;
    MPI_Comm comm = MPI_COMM_NULL;
    int rank = 0;
    std::vector<int> world_ranks;
    std::chrono::milliseconds timeout{};

    MpiGroup(std::shared_ptr<MpiState> state_, MPI_Comm comm_, int rank_, std::vector<int> ranks,
             std::chrono::milliseconds timeout_);
    MpiGroup(const MpiGroup&) = delete;
    MpiGroup& operator=(const MpiGroup&) = delete;
    ~MpiGroup();
};

class MpiCommunicator : public Communicator {
  public:
    explicit MpiCommunicator(std::shared_ptr<MpiGroup> group) : group_(std::move(group)) {}
    // All ranks of MPI_COMM_WORLD.
    static std::unique_ptr<MpiCommunicator> of_world(std::shared_ptr<MpiState> state,
                                                     std::chrono::milliseconds timeout);

    int rank() const override { return group_->rank; }
    std::span<const int> world_ranks() const override { return group_->world_ranks; }
    Request start(const Operation& operation) override;
    std::unique_ptr<Communicator> split(int color, int key) override;

  private:
    std::shared_ptr<MpiGroup> group_;
};

}  // namespace zeroproof::collectives
