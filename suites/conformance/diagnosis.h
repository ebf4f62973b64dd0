// Reads from a wrong gradient what went wrong: which contribution is missing, doubled or misrouted.
#pragma once

#include <string>

#include "suites/conformance/oracle.h"

namespace zeroproof::suites {

// A sentence about an averaged gradient element that should be `expected` and is `seen`, or an
// empty one if nothing known fits. `history` are the oracle's entries up to this step.
std::string diagnose_gradient(const Case& c, int ranks, const Expected& expected,
                              const std::vector<Expected>& history, std::size_t parameter,
                              std::size_t element, double seen);

}  // namespace zeroproof::suites
