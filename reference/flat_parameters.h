// Parameters laid end to end, padded, cut into buckets, and divided among owners.
//
//   elements      |-- a --|------ b ------|--- c ---|pad|
//   buckets       |      0      |      1      |    2    |
//   owners (N=2)  |  r0  |  r1  |  r0  |  r1  | r0 | r1 |
//
// A bucket has a constant number of elements, rounded up to a multiple of N; the last is shorter.
// In each bucket rank r owns the r-th of N equal parts, so that one reduce-scatter of the bucket
// brings every rank just what it owns, and one all-gather brings it back. The parts that a rank
// owns, laid end to end, are its shard.
//
// The paper (section 5.1) gives each rank one contiguous N-th of all elements. Here ownership is
// interleaved by bucket. Backward fills a bucket with neighbouring elements; divided as in the
// paper they would belong to one rank or a few, and how many would depend on the place.
// Interleaved, one reduce-scatter of one bucket brings each rank just what it owns, and all buckets
// are of one size. Each rank owns as many elements as in the paper, so memory and traffic are the
// same.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "reference/model.h"

namespace zeroproof::reference {

struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t size() const { return end - begin; }
};

// A run of elements of one parameter that one rank owns.
struct Slice {
    std::size_t flat = 0;  // which FlatParameters, where there are several
    std::size_t parameter = 0;
    std::size_t begin = 0;  // within the parameter
    std::size_t elements = 0;
    std::size_t flat_begin = 0;   // within the flat range
    std::size_t shard_begin = 0;  // within the owner's shard
};

class FlatParameters {
  public:
    // `members` are indices of `parameters`, in the order in which they are laid out.
    FlatParameters(std::span<const Parameter> parameters, std::vector<std::size_t> members,
                   std::size_t owners, std::size_t bucket_elements);

    const std::vector<std::size_t>& members() const { return members_; }
    std::size_t elements() const { return elements_; }
    std::size_t padded_elements() const { return padded_elements_; }
    std::size_t shard_elements() const { return padded_elements_ / owners_; }

    std::size_t buckets() const;
    Range bucket(std::size_t bucket) const;
    // What `owner` owns of the bucket, as a range of the flat elements, and where in its shard.
    Range owned(std::size_t bucket, std::size_t owner) const;
    std::size_t shard_begin(std::size_t bucket) const;

    // Where a member's elements lie.
    Range range_of(std::size_t parameter) const;
    // Every element that `owner` owns, padding left out.
    std::vector<Slice> slices(std::size_t owner) const;

  private:
    std::vector<std::size_t> members_;
    std::vector<Range> ranges_;  // of the members
    std::size_t owners_;
    std::size_t bucket_elements_;
    std::size_t elements_ = 0;
    std::size_t padded_elements_ = 0;
};

}  // namespace zeroproof::reference
