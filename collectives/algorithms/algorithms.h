// The algorithms: how each collective is made of sends and receives. One row each.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "collectives/algorithms/schedule.h"
#include "collectives/communicator.h"
#include "collectives/topology.h"

namespace zeroproof::collectives {

struct Algorithm {
    std::string_view name;
    Op op;
    // What `rank` does.
    Schedule (*schedule)(const Shape& shape, int rank);
    std::string_view description;
};

std::span<const Algorithm> algorithms();
// Null if there is none.
const Algorithm* find_algorithm(std::string_view name, Op op);

// Algorithms for all collectives: the one that the name is known for, where it has that operation,
// else the usual one.
struct AlgorithmSet {
    std::string_view name;
    std::string_view reduce_scatter, all_gather, all_reduce;
    const Algorithm& for_op(Op op) const;
};
std::span<const AlgorithmSet> algorithm_sets();
const AlgorithmSet* find_algorithm_set(std::string_view name);

// Elements sent by all ranks together, by what they travel over.
using LinkElements = std::array<std::uint64_t, kLinkClasses>;
LinkElements sent_elements(const Algorithm& algorithm, const Shape& shape);

// The shape of an operation on a group of that many ranks.
Shape shape_of(const Operation& operation, int ranks, int ranks_per_node);

}  // namespace zeroproof::collectives
