// Bytes and elements of one run, beside the formulas.
#pragma once

#include "harness/record.h"

namespace zeroproof::harness {

// Of a case that takes at least one step.
Measurement measure(const Case& c, const suites::Evidence& evidence);

}  // namespace zeroproof::harness
