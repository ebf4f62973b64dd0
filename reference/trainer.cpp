#include "reference/trainer.h"

#include <fmt/format.h>

#include "reference/checkpoint/checkpoint.h"

namespace zeroproof::reference {

namespace {

// Checked before any member is made.
const Options& checked(const Options& options, const Model& model) {
    check(options, model);
    return options;
}

// Room for the gradient of one unit, from its computation until the stage has taken it.
class UnitGradients {
  public:
    UnitGradients(const Model& model, std::size_t unit, DType type, memory::Space& space) {
        for (const std::size_t p : model.units()[unit].parameters) {
            const Parameter& parameter = model.parameters()[p];
            memory::Buffer& buffer =
                buffers_.emplace_back(space, memory::Category::gradient, type,
                                      parameter.trainable ? parameter.elements : 0);
            buffer.fill_zero();
            tensors_.push_back({type, buffer.data(), buffer.elements()});
        }
    }
    std::span<const Tensor> tensors() const { return tensors_; }

  private:
    std::vector<memory::Buffer> buffers_;
    std::vector<Tensor> tensors_;
};

}  // namespace

Trainer::Trainer(Model& model, const Options& options, Channels channels, memory::Space& space)
    : model_(model),
      options_(checked(options, model)),
      space_(space),
      stage_(make_stage({model, options_, channels, space})) {}

void Trainer::forward() {
    forward(Pass::train);
}

void Trainer::forward(Pass pass) {
    const std::size_t units = model_.units().size();
    for (std::size_t unit = 0; unit < units; ++unit) {
        stage_->gather(unit);
        if (options_.prefetch && unit + 1 < units) stage_->prefetch(unit + 1);
        model_.forward(unit, stage_->weights(unit), pass);
        stage_->release(unit);
    }
}

void Trainer::backward() {
    if (micro_step_ == options_.micro_steps)
        throw std::logic_error("backward after the last micro-step of a window: step comes first");
    if (micro_step_ == 0) stage_->zero_gradients();
    stage_->begin_backward(micro_step_ + 1 == options_.micro_steps);
    const std::span<const Segment> segments = model_.recomputed();
    std::size_t left = segments.size();
    const auto ends_segment = [&](std::size_t unit) {
        return left > 0 && segments[left - 1].end == unit + 1;
    };
    for (std::size_t unit = model_.units().size(); unit-- > 0;) {
        if (ends_segment(unit))
            recompute(--left);
        else
            stage_->gather(unit);
        if (options_.prefetch && unit > 0)
            stage_->prefetch(ends_segment(unit - 1) ? segments[left - 1].begin : unit - 1);
        const UnitGradients gradients(model_, unit, weight_type(options_.precision), space_);
        model_.backward(unit, stage_->weights(unit), gradients.tensors(), stage_->loss_scale());
        stage_->release(unit);
        stage_->accept_gradient(unit, gradients.tensors());
    }
    stage_->end_backward();
    ++micro_step_;
}

// The last unit's weights are kept for its backward pass, which comes next: of each other unit they
// are gathered once more.
void Trainer::recompute(std::size_t segment) {
    const Segment units = model_.recomputed()[segment];
    model_.restore(segment);
    for (std::size_t unit = units.begin; unit < units.end; ++unit) {
        stage_->gather(unit);
        if (options_.prefetch && unit + 1 < units.end) stage_->prefetch(unit + 1);
        model_.forward(unit, stage_->weights(unit), Pass::recompute);
        if (unit + 1 < units.end) stage_->release(unit);
    }
}

StepOutcome Trainer::step() {
    if (micro_step_ > 0)
        require_whole_window("step");
    else
        stage_->zero_gradients();
    micro_step_ = 0;
    return stage_->step();
}

void Trainer::require_whole_window(const char* what) const {
    if (micro_step_ != options_.micro_steps)
        throw std::logic_error(
            fmt::format("{} after {} of {} micro-steps", what, micro_step_, options_.micro_steps));
}

void Trainer::require_no_window(const char* what) const {
    if (micro_step_ != 0) throw std::logic_error(fmt::format("{} in the middle of a window", what));
}

void Trainer::clip(double bound) {
    require_whole_window("clipping");
    stage_->clip_gradients(bound);
}

void Trainer::scale_gradient(std::size_t parameter, float factor) {
    require_whole_window("scaling a gradient");
    stage_->scale_gradient(parameter, factor);
}

void Trainer::scale_weight(std::size_t parameter, float factor) {
    require_no_window("scaling a weight");
    stage_->scale_weight(parameter, factor);
}

void Trainer::set_learning_rate(std::size_t group, float learning_rate) {
    options_.groups.at(group).learning_rate = learning_rate;
}

void Trainer::zero_grad() {
    stage_->zero_gradients();
    micro_step_ = 0;
}

void Trainer::evaluate() {
    forward(Pass::evaluate);
}

void Trainer::save(const std::filesystem::path& folder) {
    require_no_window("a checkpoint");
    save_checkpoint(*stage_, model_, folder);
}

void Trainer::load(const std::filesystem::path& folder) {
    require_no_window("a checkpoint");
    load_checkpoint(*stage_, model_, folder);
}

}  // namespace zeroproof::reference
