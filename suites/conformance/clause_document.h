// What clauses say of themselves, for people to read.
#pragma once

#include <string>

#include "suites/conformance/clause.h"

namespace zeroproof::suites {

// docs/clauses.md: every clause with its sentence, source, faults, verdicts and cases.
std::string clauses_markdown();

// One clause for a terminal, with the command that runs it.
std::string explain(const Clause& clause);

}  // namespace zeroproof::suites
