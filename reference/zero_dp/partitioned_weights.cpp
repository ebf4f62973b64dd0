#include "reference/zero_dp/partitioned_weights.h"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "reference/kernels.h"
#include "reference/layouts.h"

namespace zeroproof::reference {

PartitionedWeights::PartitionedWeights(const Setup& setup,
                                       std::span<const FlatParameters> trainable)
    : setup_(setup),
      frozen_(flats_by_use(setup.model, false, setup.ranks(), setup.options.bucket_elements)) {
    const auto add_part = [&](const FlatParameters& flat) {
        Part part{&flat,
                  {setup.space, memory::Category::parameter, setup.type(), flat.shard_elements()},
                  {},
                  0,
                  {}};
        for (const Slice& slice : flat.slices(setup.rank()))
            fill_initial_weights(setup.model, slice.parameter, slice.begin,
                                 {setup.type(), part.shard.at(slice.shard_begin), slice.elements});
        parts_.push_back(std::move(part));
    };
    for (const FlatParameters& flat : trainable) add_part(flat);
    for (const FlatParameters& flat : frozen_) add_part(flat);
}

void PartitionedWeights::prefetch(std::size_t unit) {
    for (const std::size_t part : parts_of_unit(unit)) hold(part);
    prefetched_unit_ = unit;
}

void PartitionedWeights::gather(std::size_t unit) {
    if (prefetched_unit_ != unit) prefetch(unit);
    prefetched_unit_.reset();
    for (const std::size_t part : parts_of_unit(unit)) {
        for (collectives::Request& request : parts_[part].gathering) request.wait();
        parts_[part].gathering.clear();
    }
}

void PartitionedWeights::release(std::size_t unit) {
    for (const std::size_t part : parts_of_unit(unit)) let_go(part);
}

std::vector<ConstTensor> PartitionedWeights::of_unit(std::size_t unit) {
    std::vector<ConstTensor> weights;
    for (const std::size_t parameter : setup_.model.units()[unit].parameters)
        weights.push_back(whole(parameter));
    return weights;
}

Tensor PartitionedWeights::of_slice(const Slice& slice) {
    return {setup_.type(), parts_[slice.flat].shard.at(slice.shard_begin), slice.elements};
}

void PartitionedWeights::read(std::size_t parameter, std::span<float> values) {
    const std::size_t part = part_of(parameter);
    hold(part);
    for (collectives::Request& request : parts_[part].gathering) request.wait();
    parts_[part].gathering.clear();
    widen_into(values, whole(parameter));
    let_go(part);
}

void PartitionedWeights::write_frozen(std::size_t parameter, std::span<const float> values) {
    Part& part = parts_[part_of(parameter)];
    for (const Slice& slice : part.flat->slices(setup_.rank()))
        if (slice.parameter == parameter)
            cast_into({setup_.type(), part.shard.at(slice.shard_begin), slice.elements},
                      values.subspan(slice.begin, slice.elements));
}

std::size_t PartitionedWeights::part_of(std::size_t parameter) const {
    for (std::size_t part = 0; part < parts_.size(); ++part)
        if (std::ranges::count(parts_[part].flat->members(), parameter)) return part;
    throw std::logic_error("a parameter in no part");
}

std::vector<std::size_t> PartitionedWeights::parts_of_unit(std::size_t unit) const {
    std::set<std::size_t> parts;
    for (const std::size_t parameter : setup_.model.units()[unit].parameters)
        parts.insert(part_of(parameter));
    return {parts.begin(), parts.end()};
}

void PartitionedWeights::start_gathering(Part& part) {
    const FlatParameters& flat = *part.flat;
    part.whole = {setup_.space, memory::Category::parameter, setup_.type(), flat.padded_elements()};
    for (std::size_t b = 0; b < flat.buckets(); ++b) {
        const Range mine = flat.owned(b, setup_.rank());
        part.gathering.push_back(setup_.channels.parameters.all_gather(
            part.shard.at(flat.shard_begin(b)), part.whole.at(flat.bucket(b).begin), mine.size(),
            setup_.type()));
    }
}

// A part that the unit before still holds is kept for the next one.
void PartitionedWeights::hold(std::size_t part) {
    if (parts_[part].holders++ == 0) start_gathering(parts_[part]);
}

void PartitionedWeights::let_go(std::size_t part) {
    if (--parts_[part].holders == 0) parts_[part].whole = {};
}

ConstTensor PartitionedWeights::whole(std::size_t parameter) {
    Part& part = parts_[part_of(parameter)];
    const Range range = part.flat->range_of(parameter);
    return {setup_.type(), part.whole.at(range.begin), range.size()};
}

}  // namespace zeroproof::reference
