#include "collectives/mpi/mpi_communicator.h"

#include <numeric>
#include <utility>

#include "collectives/mpi/mpi_work.h"

namespace zeroproof::collectives {

MpiGroup::MpiGroup(std::shared_ptr<MpiState> state_, MPI_Comm comm_, int rank_,
                   std::vector<int> ranks, std::chrono::milliseconds timeout_)
    : state(std::move(state_)),
      comm(comm_),
      rank(rank_),
      world_ranks(std::move(ranks)),
      timeout(timeout_) {
    state->demand(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

MpiGroup::~MpiGroup() {
    if (state->is_sound()) MPI_Comm_free(&comm);
}

std::unique_ptr<MpiCommunicator> MpiCommunicator::of_world(std::shared_ptr<MpiState> state,
                                                           std::chrono::milliseconds timeout) {
    MPI_Comm comm = MPI_COMM_NULL;
    state->demand(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
    std::vector<int> ranks(static_cast<std::size_t>(state->size()));
    std::iota(ranks.begin(), ranks.end(), 0);
    const int rank = state->rank();
    return std::make_unique<MpiCommunicator>(
        std::make_shared<MpiGroup>(std::move(state), comm, rank, std::move(ranks), timeout));
}

Request MpiCommunicator::start(const Operation& operation) {
    check(operation, rank(), size());
    group_->state->demand_sound();
    return Request(std::make_unique<MpiWork>(group_, operation));
}

std::unique_ptr<Communicator> MpiCommunicator::split(int color, int key) {
    // What the others choose tells who is in the group. It also waits for them with the time-out,
    // which MPI_Comm_split has not.
    SplitGroup split = agree_on_split(*this, color, key);
    MPI_Comm comm = MPI_COMM_NULL;
    group_->state->demand(
        MPI_Comm_split(group_->comm, color < 0 ? MPI_UNDEFINED : color, key, &comm),
        "MPI_Comm_split");
    if (color < 0) return nullptr;
    return std::make_unique<MpiCommunicator>(std::make_shared<MpiGroup>(
        group_->state, comm, split.rank, std::move(split.world_ranks), group_->timeout));
}

}  // namespace zeroproof::collectives
