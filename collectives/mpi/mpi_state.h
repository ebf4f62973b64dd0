// What the communicators of an MpiWorld share: the failure of their rank above all.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/mpi/mpi_types.h"
#include "collectives/mpi/mpi_world.h"

namespace zeroproof::collectives {

class MpiState {
  public:
    // Initialises MPI. Throws MpiFailure.
    explicit MpiState(int largest_count);

    int rank() const { return rank_; }
    int size() const { return size_; }
    int ranks_on_this_node() const { return ranks_on_this_node_; }
    int largest_count() const { return largest_count_; }
    MpiReductions& reductions() { return reductions_; }
    void wait_as(Waiting waiting) { waiting_ = waiting; }
    Waiting waiting() const { return waiting_; }

    // Whether MPI may still be called.
    bool is_sound() const { return failure_.empty() && !is_finalized_; }
    // Throws MpiFailure once the rank has failed, or its world has ended.
    void demand_sound() const;
    // Notes the failure and throws it.
    [[noreturn]] void fail(const std::string& message);
    // Fails unless MPI has succeeded.
    void demand(int code, std::string_view what);

    void announce_failure(const std::string& message);
    // Fails if another rank has announced that it did.
    void hear_failures();

    void finalize();

  private:
    int rank_ = 0;
    int size_ = 1;
    int ranks_on_this_node_ = 1;
    int largest_count_;
    Waiting waiting_ = Waiting::busily;
    MpiReductions reductions_;
    MPI_Comm failures_ = MPI_COMM_NULL;  // what is announced travels here
    std::string failure_;                // empty: none
    bool is_finalized_ = false;
    std::string announcement_;  // in flight, as its requests are
    std::vector<MPI_Request> announcing_;
};

}  // namespace zeroproof::collectives
