// The oracle's input where the subject computes its gradients itself.
#pragma once

#include "suites/conformance/evidence.h"
#include "suites/conformance/oracle.h"

namespace zeroproof::suites {

// What the oracle expects of a run: from the gradients and weights that the case gives or, of a
// transformer, from the local gradients that each rank has seen, before any was reduced, and the
// masters that it began with. The bound of the mean then holds for what the subject has done with
// them. What the evidence lacks is NaN, which nothing matches.
std::vector<Expected> expect_after(const Case& c, const Meanings& meanings,
                                   const Evidence& evidence);

}  // namespace zeroproof::suites
