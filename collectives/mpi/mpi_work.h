// An operation of MPI in flight.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "collectives/mpi/mpi_communicator.h"

namespace zeroproof::collectives {

class MpiWork : public Work {
  public:
    // Starts `operation`, which was checked. Throws MpiFailure.
    MpiWork(std::shared_ptr<MpiGroup> group, const Operation& operation);
    // Waits, unless the rank has failed. While an exception is under way it waits for a second at
    // most, since the others may be waiting for what its rank will never start; the rank has then
    // failed.
    ~MpiWork() override;
    void wait() override;

  private:
    // What MPI gets: `input` may be MPI_IN_PLACE.
    struct Buffers {
        const void* input;
        void* output;
    };
    Buffers buffers();
    int call(Buffers buffers);
    void poll(std::chrono::milliseconds timeout);
    void finish();

    std::shared_ptr<MpiGroup> group_;
    Operation operation_;
    DType type_;  // of what travels
    MpiCount count_;
    MPI_Request request_ = MPI_REQUEST_NULL;
    bool is_pending_ = false;
    std::vector<std::byte> wide_input_;
    std::vector<std::byte> result_;  // where it must not, or cannot, come into the output at once
};

}  // namespace zeroproof::collectives
