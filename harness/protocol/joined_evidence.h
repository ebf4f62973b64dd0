// What the ranks say of one part of a case, put together.
#pragma once

#include <string>
#include <vector>

#include "harness/protocol/evidence_document.h"

namespace zeroproof::harness {

// Of a run that did not complete.
suites::Evidence without_run(suites::RunStatus status, std::string message);

// One segment if all ranks completed; what all of them observe is observed. Ranks that do not agree
// whether to refuse the case have failed.
suites::Evidence joined(const PartOfCase& part, std::vector<RankResult> ranks);

}  // namespace zeroproof::harness
