// Whether evidence has the form that clauses rely on.
#pragma once

#include <string>

#include "suites/conformance/evidence.h"

namespace zeroproof::suites {

// What evidence of a completed run of `c` lacks, or an empty text. Clauses index evidence that
// passes here without further checks; what a rank owns may still lie outside of its parameter.
std::string what_is_missing(const Case& c, const Evidence& evidence);

}  // namespace zeroproof::suites
