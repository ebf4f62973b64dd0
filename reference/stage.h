// What plain data parallelism and the three stages of ZeRO-DP have in common, and where they
// differ.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/communicator.h"
#include "memory/space.h"
#include "reference/model.h"
#include "reference/optimizer/gradient_norm.h"
#include "reference/optimizer/loss_scale.h"
#include "reference/optimizer/optimizer_states.h"
#include "reference/options.h"

namespace zeroproof::reference {

// Three communicators over the same ranks. Gradients and parameters travel at the same time, each
// in an order of its own.
struct Channels {
    collectives::Communicator& gradients;
    collectives::Communicator& parameters;
    collectives::Communicator& control;
    // The group over which weights are cut, if they are: the norm is of the whole model.
    collectives::Communicator* tensor_parallel = nullptr;
};

// What a stage is made from. All of it outlives the stage.
struct Setup {
    Model& model;
    const Options& options;
    Channels channels;
    memory::Space& space;

    std::size_t rank() const { return static_cast<std::size_t>(channels.control.rank()); }
    std::size_t ranks() const { return static_cast<std::size_t>(channels.control.size()); }
    DType type() const { return weight_type(options.precision); }
};

struct StepOutcome {
    bool skipped = false;  // a gradient was not finite somewhere: nothing but the scale changed
    double norm = 0;       // of the averaged, unscaled gradient before clipping
    float clip_coefficient = 1;
};

// Steps taken and skipped, and the loss scale: equal on all ranks.
struct Progress {
    std::int64_t steps_taken = 0;
    std::int64_t steps_skipped = 0;
    LossScale::State loss_scale;
    friend bool operator==(const Progress&, const Progress&) = default;
};

// ZeRO paper, section 5. Units are named by their place in Model::units().
class Stage {
  public:
    virtual ~Stage() = default;

    // --- Weights. Between gather and release, weights(unit) are whole. ---
    virtual void gather(std::size_t unit) = 0;
    // Promises that `unit` is gathered next, so that its gathering may begin.
    virtual void prefetch(std::size_t unit) = 0;
    virtual void release(std::size_t unit) = 0;
    virtual std::vector<ConstTensor> weights(std::size_t unit) = 0;

    // --- Gradients. One backward pass is begin, accept for each unit, end. ---
    virtual void zero_gradients() = 0;
    // The window ends with the micro-step that is `last`.
    virtual void begin_backward(bool last) = 0;
    virtual void accept_gradient(std::size_t unit, std::span<const Tensor> gradients) = 0;
    virtual void end_backward() = 0;
    // Returns once the window's gradient is reduced; what follows does so by itself.
    void wait_for_gradients() { complete_gradients(); }

    // --- Edits of the window's reduced gradient, before the step. Collective. ---
    void clip_gradients(double bound);
    void scale_gradient(std::size_t parameter, float factor);
    // Master and weight of a trainable parameter, or a frozen one's weight. Collective.
    void scale_weight(std::size_t parameter, float factor);

    // --- Step: unscale, norm, clip or skip, Adam on the owned part, publish new weights. ---
    StepOutcome step();

    // --- What the rank owns. ---
    std::size_t rank() const { return setup_.rank(); }
    std::size_t ranks() const { return setup_.ranks(); }
    const collectives::Communicator* tensor_parallel() const {
        return setup_.channels.tensor_parallel;
    }
    // Whether each rank owns, and so measures, a part only; otherwise each owns everything.
    virtual bool is_partitioned() const = 0;
    const std::vector<Slice>& owned() const { return states_.slices(); }
    // Where the window's gradient lies once it is reduced: the mean over ranks, summed over
    // micro-steps, times the loss scale.
    virtual Tensor gradient(const Slice& slice) = 0;
    virtual Tensor weight(const Slice& slice) = 0;
    std::span<float> master(const Slice& slice);
    std::span<float> momentum(const Slice& slice) { return states_.momentum(slice); }
    std::span<float> variance(const Slice& slice) { return states_.variance(slice); }
    // What divides the gradient to unscale it and to average it over micro-steps.
    float gradient_divisor() const;

    // Rounds the masters to the weights and makes those known to every rank that uses them.
    // Collective. After each step; also after the masters were changed from outside.
    void publish();

    // The text of the lowest rank whose text is not empty, if there is one. Where weights are cut,
    // the ranks of the tensor-parallel group are asked too. Collective.
    std::string first_text(std::string text);

    Progress progress() const;
    void restore(const Progress& progress);
    float loss_scale() const { return loss_scale_.value(); }

    // A parameter as the ranks see it now. Collective; values as long as the parameter.
    virtual void read_weights(std::size_t parameter, std::span<float> values) = 0;
    // Likewise from outside, for a frozen parameter.
    virtual void write_frozen(std::size_t parameter, std::span<const float> values) = 0;

  protected:
    // `flats` hold the trainable parameters; the rank owns what belongs to `owner` of them.
    Stage(const Setup& setup, std::span<const FlatParameters> flats, std::size_t owner);

    // Waits until every reduction of the window is in.
    virtual void complete_gradients() = 0;
    // Sends the new weights of the owned part to whoever keeps a copy.
    virtual void publish_weights() = 0;

    Setup setup_;

  private:
    // Of the whole reduced gradient, unscaled; the same on every rank.
    GradientMeasure measure_gradients();

    OptimizerStates states_;
    // The owned slices that are part of the norm: of what each rank of a tensor-parallel group has
    // a copy of, one counts.
    std::vector<Slice> counted_;
    LossScale loss_scale_;
    std::int64_t steps_taken_ = 0;
    std::int64_t steps_skipped_ = 0;
};

// The stage that `setup.options` asks for: plain data parallelism, 1, 2 or 3.
std::unique_ptr<Stage> make_stage(const Setup& setup);

}  // namespace zeroproof::reference
