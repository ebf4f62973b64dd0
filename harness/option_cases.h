// Cases that set what is the subject's own and must not change a result.
#pragma once

#include <vector>

#include "suites/conformance/declaration.h"

namespace zeroproof::harness {

// For each case of the family "options", each option that is declared for its stage and each value
// but the default: that case with the one option set. Its id ends in "OPTION=VALUE".
std::vector<suites::Case> option_cases(const std::vector<suites::Case>& cases,
                                       const suites::Declaration& declaration);

}  // namespace zeroproof::harness
