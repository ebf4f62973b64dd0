// Failures that are known: each with a reason, none for ever.
#pragma once

#include <string>
#include <vector>

#include "harness/record.h"

namespace zeroproof::harness {

struct Expectation {
    std::string clause;  // a clause's name
    std::string cases;   // a pattern of case ids
    std::string reason;
};

// {"expectations": [{"clause": "...", "cases": "...", "fails_because": "..."}]}. Throws
// scenarios::BadInput, also for a clause that does not exist and a reason that is empty.
std::vector<Expectation> read_expectations(const std::string& file);

// Strict: every case that a row matches must fail that clause. Marks those that do, and adds to the
// record what was promised and did not come: a pass where a failure was expected, and a row that
// matches nothing.
void apply_expectations(const std::vector<Expectation>& expectations, Record& record);

}  // namespace zeroproof::harness
