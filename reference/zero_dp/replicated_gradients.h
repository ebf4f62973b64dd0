// Whole gradients on every rank, accumulated over the window and reduced at its end: plain data
// parallelism and stage 1.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "reference/bucket_tracker.h"
#include "reference/stage.h"

namespace zeroproof::reference {

class ReplicatedGradients {
  public:
    // Starts the reduction of one bucket over the ranks, in place.
    using Reduce =
        std::function<collectives::Request(memory::Buffer& gradients, std::size_t bucket)>;

    ReplicatedGradients(const Setup& setup, const FlatParameters& flat, Reduce reduce);

    void zero();
    void begin_backward(bool last);
    void accept(std::size_t unit, std::span<const Tensor> gradients);
    void end_backward();
    void complete();
    Tensor of_slice(const Slice& slice);

  private:
    void start_reduction(std::size_t bucket);

    Setup setup_;
    const FlatParameters& flat_;
    Reduce reduce_;
    memory::Buffer gradients_;
    BucketTracker tracker_;
    bool last_micro_step_ = false;
    std::vector<collectives::Request> in_flight_;  // end before the memory that they use
};

}  // namespace zeroproof::reference
