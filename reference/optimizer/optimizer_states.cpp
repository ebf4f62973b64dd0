#include "reference/optimizer/optimizer_states.h"

namespace zeroproof::reference {

OptimizerStates::OptimizerStates(std::span<const FlatParameters> flats, std::size_t owner,
                                 Precision precision, const Model& model, memory::Space& space) {
    using memory::Category;
    for (std::size_t f = 0; f < flats.size(); ++f) {
        const std::size_t shard = flats[f].shard_elements();
        momenta_.emplace_back(space, Category::momentum, DType::fp32, shard).fill_zero();
        variances_.emplace_back(space, Category::variance, DType::fp32, shard).fill_zero();
        if (precision != Precision::fp32)
            masters_.emplace_back(space, Category::master, DType::fp32, shard);
        for (Slice slice : flats[f].slices(owner)) {
            slice.flat = f;
            slices_.push_back(slice);
        }
    }
    if (keeps_masters())
        for (const Slice& slice : slices_)
            model.initial_weights(slice.parameter, slice.begin, master(slice));
}

}  // namespace zeroproof::reference
