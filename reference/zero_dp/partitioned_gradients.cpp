#include "reference/zero_dp/partitioned_gradients.h"

#include <algorithm>

#include "reference/kernels.h"

namespace zeroproof::reference {

namespace {

// It bounds memory: beside the buckets that fill there is one bucket that travels, however many a
// backward pass completes. One is enough to overlap communication with computation.
constexpr std::size_t kMostTravelling = 1;

}  // namespace

PartitionedGradients::PartitionedGradients(const Setup& setup,
                                           std::span<const FlatParameters> flats)
    : setup_(setup), flats_(flats), tracker_(flats, setup.model.units()) {
    for (const FlatParameters& flat : flats)
        shards_
            .emplace_back(setup.space, memory::Category::gradient, setup.type(),
                          flat.shard_elements())
            .fill_zero();
}

void PartitionedGradients::zero() {
    for (memory::Buffer& shard : shards_) shard.fill_zero();
}

void PartitionedGradients::begin_backward() {
    tracker_.reset();
}

void PartitionedGradients::accept(std::size_t unit, std::span<const Tensor> gradients) {
    const std::vector<std::size_t>& parameters = setup_.model.units()[unit].parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i)
        if (setup_.model.parameters()[parameters[i]].trainable) add(parameters[i], gradients[i]);
    for (const BucketId complete : tracker_.visit(unit)) send(complete);
}

void PartitionedGradients::end_backward() {
    for (const BucketId id : tracker_.never_used()) send(id);
    while (!travelling_.empty()) settle_oldest();
}

Tensor PartitionedGradients::of_slice(const Slice& slice) {
    return {setup_.type(), shards_[slice.flat].at(slice.shard_begin), slice.elements};
}

// Adds a parameter's gradient to each bucket that it lies in.
void PartitionedGradients::add(std::size_t parameter, ConstTensor gradient) {
    const std::size_t width = memory::size_of(gradient.type);
    for (std::size_t f = 0; f < flats_.size(); ++f) {
        const FlatParameters& flat = flats_[f];
        if (!std::ranges::count(flat.members(), parameter)) continue;
        const Range range = flat.range_of(parameter);
        for (std::size_t b = 0; b < flat.buckets(); ++b) {
            const Range bucket = flat.bucket(b);
            const std::size_t begin = std::max(range.begin, bucket.begin);
            const std::size_t end = std::min(range.end, bucket.end);
            if (begin >= end) continue;
            add_into({gradient.type, open({f, b}).at(begin - bucket.begin), end - begin},
                     {gradient.type, gradient.data + (begin - range.begin) * width, end - begin});
        }
    }
}

memory::Buffer& PartitionedGradients::open(BucketId id) {
    memory::Buffer& bucket = filling_[{id.flat, id.bucket}];
    if (bucket.empty()) {
        bucket = {setup_.space, memory::Category::buffer, setup_.type(),
                  flats_[id.flat].bucket(id.bucket).size()};
        bucket.fill_zero();
    }
    return bucket;
}

void PartitionedGradients::send(BucketId id) {
    while (travelling_.size() >= kMostTravelling) settle_oldest();
    open(id);
    Travelling next{.id = id,
                    .bucket = std::move(filling_.extract({id.flat, id.bucket}).mapped()),
                    .reduced = {},
                    .request = {}};
    const std::size_t part = next.bucket.elements() / setup_.ranks();
    next.reduced = {setup_.space, memory::Category::buffer, setup_.type(), part};
    next.request = setup_.channels.gradients.reduce_scatter(
        next.bucket.data(), next.reduced.data(), part, setup_.type(), collectives::Reduction::mean);
    travelling_.push_back(std::move(next));
    if (!setup_.options.overlap) settle_oldest();
}

void PartitionedGradients::settle_oldest() {
    Travelling& oldest = travelling_.front();
    oldest.request.wait();
    const std::size_t part = oldest.reduced.elements();
    const std::size_t at = flats_[oldest.id.flat].shard_begin(oldest.id.bucket);
    add_into({setup_.type(), shards_[oldest.id.flat].at(at), part},
             ConstTensor{setup_.type(), oldest.reduced.data(), part});
    travelling_.pop_front();
}

}  // namespace zeroproof::reference
