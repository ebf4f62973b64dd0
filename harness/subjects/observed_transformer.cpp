#include "harness/subjects/observed_transformer.h"

#include <algorithm>

#include "harness/subjects/transformer_shape.h"
#include "reference/kernels.h"
#include "reference/tensor/philox.h"

namespace zeroproof::harness {

namespace {

std::vector<float> copy_of(reference::ConstTensor tensor) {
    std::vector<float> values(tensor.elements);
    reference::widen_into(values, tensor);
    return values;
}

}  // namespace

ObservedTransformer::ObservedTransformer(const suites::Case& c,
                                         const reference::TransformerOptions& options,
                                         memory::Space& space, Notice notice)
    : case_(c),
      model_(make_transformer(weight_type(c.precision), shape_of(c.transformer->model), options,
                              space)),
      parameters_(model_->parameters()),
      notice_(std::move(notice)) {
    for (std::size_t p = 0; p < parameters_.size(); ++p)
        parameters_[p].group = c.parameters[p].group;
}

void ObservedTransformer::begin_micro_step(std::size_t micro_step, int rank, int ranks) {
    const suites::TransformerCase& t = *case_.transformer;
    const std::uint64_t first =
        (micro_step * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(rank)) * t.samples;
    // Any text would do: each sample another one.
    std::vector<std::int32_t> tokens;
    std::vector<std::int32_t> targets;
    for (std::size_t sample = 0; sample < t.samples; ++sample) {
        const auto token = [&](std::size_t position) {
            const auto random =
                reference::philox({static_cast<std::uint32_t>(position),
                                   static_cast<std::uint32_t>(first + sample), 0, 0},
                                  {static_cast<std::uint32_t>(case_.seed), 0});
            return static_cast<std::int32_t>(random[0] % t.model.vocabulary);
        };
        for (std::size_t i = 0; i < t.model.sequence; ++i) {
            tokens.push_back(token(i));
            targets.push_back(token(i + 1));
        }
    }
    model_->set_batch(tokens, targets, first);
    evidence_ = {};
    evidence_.checkpoints.resize(recomputed().size());
    for (std::size_t p = 0; p < parameters().size(); ++p)
        evidence_.gradients.emplace_back(suites::uses_of(case_, p));
}

void ObservedTransformer::note_after_forward(const memory::Ledger& device,
                                             const memory::Ledger& host) {
    evidence_.loss = model_->loss();
    evidence_.after_forward = device.live_bytes_by_category();
    evidence_.host_after_forward = host.live_bytes_by_category();
    for (std::size_t s = 0; s < evidence_.checkpoints.size(); ++s)
        evidence_.checkpoints[s].part = copy_of(model_->checkpoints().part(s));
}

void ObservedTransformer::note_after_backward(const memory::Ledger& device) {
    evidence_.after_backward = device.live_bytes_by_category();
}

suites::ActivationEvidence ObservedTransformer::take(int action) {
    evidence_.action = action;
    return std::move(evidence_);
}

void ObservedTransformer::restore(std::size_t segment) {
    model_->restore(segment);
    evidence_.checkpoints[segment].restored = copy_of(model_->stream());
}

void ObservedTransformer::forward(std::size_t unit, std::span<const reference::ConstTensor> weights,
                                  reference::Pass pass) {
    for (std::size_t s = 0; pass == reference::Pass::train && s < recomputed().size(); ++s)
        if (recomputed()[s].begin == unit)
            evidence_.checkpoints[s].stored = copy_of(model_->stream());
    if (pass != reference::Pass::evaluate) notice_(pass == reference::Pass::recompute, unit);
    model_->forward(unit, weights, pass);
}

void ObservedTransformer::backward(std::size_t unit,
                                   std::span<const reference::ConstTensor> weights,
                                   std::span<const reference::Tensor> gradients, float loss_scale) {
    notice_(true, unit);
    model_->backward(unit, weights, gradients, loss_scale);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
        const std::size_t parameter = units()[unit].parameters[i];
        std::vector<float> gradient = copy_of(gradients[i]);
        for (float& g : gradient) g /= loss_scale;
        evidence_.gradients[parameter][use_of(unit, parameter)] = std::move(gradient);
    }
}

std::size_t ObservedTransformer::use_of(std::size_t unit, std::size_t parameter) const {
    std::size_t use = 0;
    for (std::size_t u = 0; u < unit; ++u)
        use += static_cast<std::size_t>(std::ranges::count(units()[u].parameters, parameter));
    return use;
}

}  // namespace zeroproof::harness
