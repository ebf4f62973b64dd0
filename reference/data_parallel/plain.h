// Plain data parallelism: every rank keeps everything, 16 bytes a parameter in mixed precision.
#pragma once

#include "reference/zero_dp/replicated_stage.h"

namespace zeroproof::reference {

// Gradients are all-reduced at the end of the window; each rank then takes the same step.
class PlainDataParallel : public ReplicatedStage {
  public:
    explicit PlainDataParallel(const Setup& setup);
    bool is_partitioned() const override { return false; }

  private:
    collectives::Request start_reduction(memory::Buffer& gradients, std::size_t bucket) override;
    void publish_weights() override {}  // all ranks hold them already
};

}  // namespace zeroproof::reference
