// From JSON to a case.
#pragma once

#include <string>

#include "suites/conformance/case.h"
#include "suites/conformance/json_reader.h"

namespace zeroproof::suites {

// An object whose keys are those that docs/cases.md lists. Throws BadInput.
Case read_case(const JsonReader& object);

}  // namespace zeroproof::suites
