// How the partition that the specification describes divides a case's parameters: the counts that
// formulas on memory and traffic need. Written from the specification, without any implementation.
#pragma once

#include <cstddef>
#include <vector>

#include "memory/formulas.h"
#include "suites/conformance/case.h"

namespace zeroproof::suites {

std::size_t round_up(std::size_t value, std::size_t multiple);

// Parameters that are partitioned together.
struct PartitionedSet {
    bool trainable = true;
    std::vector<std::size_t> units;  // that use them
    std::size_t elements = 0;
    std::size_t padded = 0;   // rounded up to a multiple of the ranks
    std::size_t buckets = 0;  // of the case's bucket size, rounded up likewise
};

// The sets of a stage on so many ranks. Plain data parallelism has one, without padding; stages 1
// and 2 pad all trainable parameters together; stage 3 pads those of each set of units that use
// them.
std::vector<PartitionedSet> partitioned_sets(const Case& c, int stage, int ranks);

// Sums over the sets, for the formulas.
memory::Counts counts_of(const Case& c, int stage, int ranks);

// Elements and operations that one pass over the units gathers in stage 3: each set before each
// unit that uses it, unless the unit before has kept it, which prefetching does.
struct Gathered {
    std::size_t elements = 0;
    std::size_t operations = 0;
};
Gathered gathered_in_pass(const Case& c, const std::vector<PartitionedSet>& sets);

// What recomputing activations gathers beyond that, in a backward pass: each unit of a segment but
// the last, whose weights are kept for its own backward.
Gathered gathered_again(const Case& c, const std::vector<PartitionedSet>& sets);

}  // namespace zeroproof::suites
