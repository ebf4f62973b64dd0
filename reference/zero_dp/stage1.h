// Stage 1, Pos: optimizer states are partitioned. 4 + 12 / N bytes a parameter in mixed precision.
#pragma once

#include "reference/zero_dp/replicated_stage.h"

namespace zeroproof::reference {

// At the end of the window each rank gets the reduced gradient of what it owns, steps that part,
// and gathers the new weights of the others.
class Stage1 : public ReplicatedStage {
  public:
    explicit Stage1(const Setup& setup);
    bool is_partitioned() const override { return true; }

  private:
    collectives::Request start_reduction(memory::Buffer& gradients, std::size_t bucket) override;
    void publish_weights() override { replicas().all_gather(); }
};

}  // namespace zeroproof::reference
