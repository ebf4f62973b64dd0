// How the collectives of the built-in reference travel.
#pragma once

#include <functional>

#include "collectives/algorithms/algorithms.h"

namespace zeroproof::harness {

struct Carrier {
    const collectives::AlgorithmSet* algorithms = nullptr;  // null: the transport's own operations
    // Of each node, where this divides the ranks; else all of them stand on one node.
    int ranks_per_node = 1;
};

// Calls `body` with a communicator over the ranks of `world` whose collectives are carried so.
void with_carrier(const Carrier& carrier, collectives::Communicator& world,
                  const std::function<void(collectives::Communicator&)>& body);

}  // namespace zeroproof::harness
