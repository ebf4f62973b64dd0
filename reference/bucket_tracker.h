// Tells when every gradient of a bucket is in.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "reference/flat_parameters.h"

namespace zeroproof::reference {

struct BucketId {
    std::size_t flat;
    std::size_t bucket;
};

// A bucket is complete once each use of each parameter that lies in it has been visited. A tied
// parameter has several uses, so its buckets wait for the last one. Whether a use had a gradient
// makes no difference: all ranks complete the same buckets in the same order.
class BucketTracker {
  public:
    BucketTracker(std::span<const FlatParameters> flats, std::span<const Unit> units);

    // Starts a backward pass.
    void reset();
    // Backward has passed `unit`. Returns the buckets that this completes: within one flat range
    // the last first, and the ranges in their order.
    std::vector<BucketId> visit(std::size_t unit);
    // Buckets of which no unit uses any element.
    const std::vector<BucketId>& never_used() const { return never_used_; }

  private:
    std::vector<std::vector<BucketId>> touched_;  // by unit, one entry a use
    std::vector<std::vector<std::size_t>> uses_;  // by flat and bucket
    std::vector<std::vector<std::size_t>> uses_left_;
    std::vector<BucketId> never_used_;
};

}  // namespace zeroproof::reference
