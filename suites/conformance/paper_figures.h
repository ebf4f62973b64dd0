// What the papers say of a case in numbers: elements that travel and bytes that stay.
#pragma once

#include <cstddef>
#include <vector>

#include "collectives/record.h"
#include "memory/ledger.h"
#include "suites/conformance/case.h"
#include "suites/conformance/oracle.h"

namespace zeroproof::suites {

// Nominal elements of one kind of traffic, in one phase of one action: 2P for an all-reduce of P
// elements, otherwise P.
struct PaperVolume {
    int action = 0;
    memory::Phase phase = memory::Phase::forward;
    collectives::Traffic traffic = collectives::Traffic::gradient;
    std::size_t elements = 0;
    std::size_t operations = 0;  // one a bucket
};

// Of gradients and weights, in the part of the program before the reload or behind it, in the order
// of actions, phases and traffic. What is not in it is zero. `expected` is of the oracle, which
// knows the steps that are skipped.
std::vector<PaperVolume> paper_volumes(const Case& c, bool behind_reload,
                                       const std::vector<Expected>& expected);

// On each rank between a step and the next window.
memory::BytesByCategory paper_bytes_at_rest(const Case& c, int stage, int ranks);

}  // namespace zeroproof::suites
