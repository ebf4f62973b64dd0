// The list that the build makes from the files in clauses/.
#pragma once

#include <vector>

#include "suites/conformance/clause.h"

namespace zeroproof::suites {

// In the order of the files.
std::vector<Clause> registered_clauses();

}  // namespace zeroproof::suites
