// Master weights, momentum and variance of what a rank owns.
#pragma once

#include <span>
#include <vector>

#include "memory/space.h"
#include "reference/flat_parameters.h"
#include "reference/options.h"

namespace zeroproof::reference {

// Always fp32. Mixed precision keeps a master beside each weight; in fp32 the weight is its own
// master, and none is kept here. Momentum and variance start at zero, masters at the model's
// initial weights, before any rounding.
class OptimizerStates {
  public:
    OptimizerStates(std::span<const FlatParameters> flats, std::size_t owner, Precision precision,
                    const Model& model, memory::Space& space);

    // What the rank owns: each element of each trainable parameter has one owner.
    const std::vector<Slice>& slices() const { return slices_; }
    bool keeps_masters() const { return !masters_.empty(); }
    std::span<float> master(const Slice& slice) { return part(masters_, slice); }
    std::span<float> momentum(const Slice& slice) { return part(momenta_, slice); }
    std::span<float> variance(const Slice& slice) { return part(variances_, slice); }

  private:
    static std::span<float> part(std::vector<memory::Buffer>& shards, const Slice& slice) {
        return shards[slice.flat].floats().subspan(slice.shard_begin, slice.elements);
    }

    std::vector<Slice> slices_;
    // By flat, as long as its shard:
    std::vector<memory::Buffer> masters_;
    std::vector<memory::Buffer> momenta_;
    std::vector<memory::Buffer> variances_;
};

}  // namespace zeroproof::reference
