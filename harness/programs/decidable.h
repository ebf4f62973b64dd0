// Which cases a verdict can be given of.
#pragma once

#include <optional>

#include "suites/conformance/declaration.h"

namespace zeroproof::harness {

using suites::Case;

// The case as the reader of families makes it of its text, so that a file of it is the same case;
// nothing if the reader refuses it.
std::optional<Case> legal(const Case& c);

// Whether the oracle's bounds say anything of the case: not where rounding decides whether a
// gradient is clipped, where an edited gradient leaves the range of its type, or where a bound is
// wider than what it bounds. Nor where the specification is silent: what a checkpoint holds of
// parameters that join or freeze on the way, a load of what was saved before a reload, and an edit
// of a weight that is frozen for ever.
bool decidable(const Case& c, const suites::Declaration& declaration);

}  // namespace zeroproof::harness
