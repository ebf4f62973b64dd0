#include "reference/zero_dp/replicated_weights.h"

#include "reference/kernels.h"
#include "reference/layouts.h"

namespace zeroproof::reference {

ReplicatedWeights::ReplicatedWeights(const Setup& setup, const FlatParameters& flat)
    : setup_(setup),
      flat_(flat),
      frozen_flat_(one_flat(setup.model, false, 1, setup.options.bucket_elements)),
      trainable_(setup.space, memory::Category::parameter, setup.type(), flat.padded_elements()),
      frozen_(setup.space, memory::Category::parameter, setup.type(), frozen_flat_.elements()) {
    for (std::size_t p = 0; p < setup.model.parameters().size(); ++p)
        fill_initial_weights(setup.model, p, 0, of_parameter(p));
}

Tensor ReplicatedWeights::of_parameter(std::size_t parameter) {
    const bool trainable = setup_.model.parameters()[parameter].trainable;
    const Range range = (trainable ? flat_ : frozen_flat_).range_of(parameter);
    return {setup_.type(), (trainable ? trainable_ : frozen_).at(range.begin), range.size()};
}

std::vector<ConstTensor> ReplicatedWeights::of_unit(std::size_t unit) {
    std::vector<ConstTensor> weights;
    for (const std::size_t parameter : setup_.model.units()[unit].parameters)
        weights.push_back(of_parameter(parameter));
    return weights;
}

Tensor ReplicatedWeights::of_slice(const Slice& slice) {
    return {setup_.type(), trainable_.at(slice.flat_begin), slice.elements};
}

void ReplicatedWeights::read(std::size_t parameter, std::span<float> values) {
    widen_into(values, of_parameter(parameter));
}

void ReplicatedWeights::write(std::size_t parameter, std::span<const float> values) {
    cast_into(of_parameter(parameter), values);
}

void ReplicatedWeights::all_gather() {
    std::vector<collectives::Request> requests;
    for (std::size_t b = 0; b < flat_.buckets(); ++b) {
        const Range mine = flat_.owned(b, setup_.rank());
        requests.push_back(setup_.channels.parameters.all_gather(
            trainable_.at(mine.begin), trainable_.at(flat_.bucket(b).begin), mine.size(),
            setup_.type()));
    }
    for (collectives::Request& request : requests) request.wait();
}

}  // namespace zeroproof::reference
