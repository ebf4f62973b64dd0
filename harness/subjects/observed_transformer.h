// A transformer of the reference, each step of which is written down.
#pragma once

#include <functional>
#include <memory>

#include "reference/models/transformer.h"
#include "suites/conformance/evidence.h"

namespace zeroproof::harness {

// Forwards to the reference's model, and notes what goes into a checkpoint, what comes out of it,
// and the local gradient of each use of each parameter.
class ObservedTransformer : public reference::Model {
  public:
    // Told before a unit computes.
    using Notice = std::function<void(bool backward, std::size_t unit)>;

    ObservedTransformer(const suites::Case& c, const reference::TransformerOptions& options,
                        memory::Space& space, Notice notice);

    // Before forward: what this micro-step trains on, on that data-parallel rank of so many.
    void begin_micro_step(std::size_t micro_step, int rank, int ranks);
    // After forward, and after backward.
    void note_after_forward(const memory::Ledger& device, const memory::Ledger& host);
    void note_after_backward(const memory::Ledger& device);
    suites::ActivationEvidence take(int action);
    bool moves_checkpoint() const { return model_->checkpoints().is_moving(); }

    // In the groups of the case.
    const std::vector<reference::Parameter>& parameters() const override { return parameters_; }
    const std::vector<reference::Unit>& units() const override { return model_->units(); }
    void initial_weights(std::size_t parameter, std::size_t begin,
                         std::span<float> values) const override {
        model_->initial_weights(parameter, begin, values);
    }
    std::span<const reference::Segment> recomputed() const override { return model_->recomputed(); }
    void restore(std::size_t segment) override;
    void forward(std::size_t unit, std::span<const reference::ConstTensor> weights,
                 reference::Pass pass) override;
    void backward(std::size_t unit, std::span<const reference::ConstTensor> weights,
                  std::span<const reference::Tensor> gradients, float loss_scale) override;

  private:
    // Of the unit's use of its parameter, among all uses of that.
    std::size_t use_of(std::size_t unit, std::size_t parameter) const;

    const suites::Case& case_;
    std::unique_ptr<reference::LanguageModel> model_;
    std::vector<reference::Parameter> parameters_;
    Notice notice_;
    suites::ActivationEvidence evidence_;
};

}  // namespace zeroproof::harness
