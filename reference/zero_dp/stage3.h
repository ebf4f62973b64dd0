// Stage 3, Pos+g+p: weights are partitioned too. 16 / N bytes a parameter in mixed precision, and
// what one unit needs while it computes.
#pragma once

#include <vector>

#include "reference/stage.h"
#include "reference/zero_dp/layout_holder.h"
#include "reference/zero_dp/partitioned_gradients.h"
#include "reference/zero_dp/partitioned_weights.h"

namespace zeroproof::reference {

// A unit's weights are all-gathered before its forward and again before its backward, and freed
// after each. After the step nobody needs to be told: the next gather brings the new weights.
class Stage3 : private LayoutHolder<std::vector<FlatParameters>>, public Stage {
  public:
    explicit Stage3(const Setup& setup);
    bool is_partitioned() const override { return true; }

    void gather(std::size_t unit) override { weights_.gather(unit); }
    void prefetch(std::size_t unit) override { weights_.prefetch(unit); }
    void release(std::size_t unit) override { weights_.release(unit); }
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
        weights_.write_frozen(parameter, values);
    }

  private:
    void complete_gradients() override {}  // the end of each backward pass waits
    void publish_weights() override {}

    PartitionedWeights weights_;
    PartitionedGradients gradients_;
};

}  // namespace zeroproof::reference
