// What plain data parallelism and stage 1 share: whole weights and whole gradients on every rank.
#pragma once

#include "reference/stage.h"
#include "reference/zero_dp/layout_holder.h"
#include "reference/zero_dp/replicated_gradients.h"
#include "reference/zero_dp/replicated_weights.h"

namespace zeroproof::reference {

class ReplicatedStage : private LayoutHolder<FlatParameters>, public Stage {
  public:
    void gather(std::size_t) override {}
    void prefetch(std::size_t) override {}
    void release(std::size_t) override {}
    std::vector<ConstTensor> weights(std::size_t unit) override { return weights_.of_unit(unit); }

    void zero_gradients() override { gradients_.zero(); }
    void begin_backward(bool last) override { gradients_.begin_backward(last); }
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

  protected:
    ReplicatedStage(const Setup& setup, FlatParameters flat, std::size_t owner)
        : LayoutHolder(std::move(flat)),
          Stage(setup, {&layout(), 1}, owner),
          weights_(setup, layout()),
          gradients_(setup, layout(), [this](memory::Buffer& gradients, std::size_t bucket) {
              return start_reduction(gradients, bucket);
          }) {}

    // Starts the reduction of one bucket of the gradients over the ranks, in place.
    virtual collectives::Request start_reduction(memory::Buffer& gradients, std::size_t bucket) = 0;
    void complete_gradients() override { gradients_.complete(); }
    const FlatParameters& flat() const { return layout(); }
    ReplicatedWeights& replicas() { return weights_; }

  private:
    ReplicatedWeights weights_;
    ReplicatedGradients gradients_;
};

}  // namespace zeroproof::reference
