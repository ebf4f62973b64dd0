#include "reference/zero_dp/replicated_gradients.h"

#include "reference/kernels.h"

namespace zeroproof::reference {

ReplicatedGradients::ReplicatedGradients(const Setup& setup, const FlatParameters& flat,
                                         Reduce reduce)
    : setup_(setup),
      flat_(flat),
      reduce_(std::move(reduce)),
      gradients_(setup.space, memory::Category::gradient, setup.type(), flat.padded_elements()),
      tracker_({&flat, 1}, setup.model.units()) {
    gradients_.fill_zero();
}

void ReplicatedGradients::zero() {
    complete();
    gradients_.fill_zero();
}

void ReplicatedGradients::begin_backward(bool last) {
    tracker_.reset();
    last_micro_step_ = last;
}

void ReplicatedGradients::accept(std::size_t unit, std::span<const Tensor> gradients) {
    const std::vector<std::size_t>& parameters = setup_.model.units()[unit].parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (!setup_.model.parameters()[parameters[i]].trainable) continue;
        const Range range = flat_.range_of(parameters[i]);
        add_into({setup_.type(), gradients_.at(range.begin), range.size()}, gradients[i]);
    }
    for (const BucketId complete : tracker_.visit(unit))
        if (last_micro_step_) start_reduction(complete.bucket);
}

void ReplicatedGradients::end_backward() {
    if (!last_micro_step_) return;
    for (const BucketId id : tracker_.never_used()) start_reduction(id.bucket);
}

void ReplicatedGradients::complete() {
    for (collectives::Request& request : in_flight_) request.wait();
    in_flight_.clear();
}

Tensor ReplicatedGradients::of_slice(const Slice& slice) {
    return {setup_.type(), gradients_.at(slice.flat_begin), slice.elements};
}

void ReplicatedGradients::start_reduction(std::size_t bucket) {
    in_flight_.push_back(reduce_(gradients_, bucket));
    if (!setup_.options.overlap) complete();
}

}  // namespace zeroproof::reference
