// Stage 2, Pos+g: gradients are partitioned too. 2 + 14 / N bytes a parameter in mixed precision,
// and the buckets that fill or travel.
#pragma once

#include "reference/stage.h"
#include "reference/zero_dp/layout_holder.h"
#include "reference/zero_dp/partitioned_gradients.h"
#include "reference/zero_dp/replicated_weights.h"

namespace zeroproof::reference {

// Buckets are reduce-scattered to their owners as backward fills them, in every micro-step, and
// freed. The step is that of stage 1.
class Stage2 : private LayoutHolder<FlatParameters>, public Stage {
  public:
    explicit Stage2(const Setup& setup);
    bool is_partitioned() const override { return true; }

    void gather(std::size_t) override {}
    void prefetch(std::size_t) override {}
    void release(std::size_t) override {}
    std::vector<ConstTensor> weights(std::size_t unit) override { return weights_.of_unit(unit); }

    void zero_gradients() override { gradients_.zero(); }
    void begin_backward(bool) override { gradients_.begin_backward(); }
    void accept_gradient(std::size_t unit, std::span<const Tensor> gradients) override {
        gradients_.accept(unit, gradients);
    }
    void end_backward() override { gradients_.end_backward(); }

    Tensor gradient(const Slice& slice) override { return gradients_.of_slice(slice); }
    Tensor weight(const Slice& slice) override { return weights_.of_slice(slice); }
    void read_weights(std::size_t parameter, std::span<float> values) override {
        weights_.read(parameter, values);
    }
    void write_frozen(std::size_t parameter, std::span<const float> values) override {
        weights_.write(parameter, values);
    }

  private:
    void complete_gradients() override {}  // the end of each backward pass waits
    void publish_weights() override { weights_.all_gather(); }

    ReplicatedWeights weights_;
    PartitionedGradients gradients_;
};

}  // namespace zeroproof::reference
