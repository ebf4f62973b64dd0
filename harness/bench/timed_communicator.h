// A communicator that tells how long its rank has stood in it.
#pragma once

#include <chrono>
#include <memory>

#include "collectives/communicator.h"

namespace zeroproof::harness {

// Adds the time of starting and waiting to `seconds`, which outlives it and its requests.
class TimedCommunicator : public collectives::Communicator {
  public:
    TimedCommunicator(std::unique_ptr<collectives::Communicator> inner, double& seconds)
        : inner_(std::move(inner)), seconds_(seconds) {}

    int rank() const override { return inner_->rank(); }
    std::span<const int> world_ranks() const override { return inner_->world_ranks(); }
    collectives::Request start(const collectives::Operation& operation) override;
    std::unique_ptr<collectives::Communicator> split(int color, int key) override;

  private:
    std::unique_ptr<collectives::Communicator> inner_;
    double& seconds_;
};

}  // namespace zeroproof::harness
