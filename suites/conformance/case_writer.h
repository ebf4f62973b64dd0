// A case as JSON, in the format of docs/cases.md.
#pragma once

#include "scenarios/json_reader.h"
#include "suites/conformance/case.h"

namespace zeroproof::suites {

// A family of this one case, without a sweep: `read_family` makes an equal case of its text. The
// twin is left out, and names of units that the format does not give are lost.
scenarios::Json case_to_json(const Case& c);

// "inf", "-inf" and "nan" as texts, which JSON has no numbers for.
scenarios::Json number_to_json(double value);

}  // namespace zeroproof::suites
