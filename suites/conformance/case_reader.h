// From JSON to a case.
#pragma once

#include <string>

#include "scenarios/json_reader.h"
#include "suites/conformance/case.h"

namespace zeroproof::suites {

// An object whose keys are those that docs/cases.md lists. Throws BadInput.
Case read_case(const scenarios::JsonReader& object);

}  // namespace zeroproof::suites
