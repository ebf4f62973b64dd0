// Which cases and clauses a run is about.
#pragma once

#include <string>
#include <vector>

#include "harness/record.h"

namespace zeroproof::harness {

// Shell patterns: * any text, ? any letter, [abc]. One that holds none of these matches whatever it
// is a part of.
bool matches_pattern(const std::string& pattern, const std::string& text);

struct Selection {
    std::vector<int> stages;           // empty: all
    std::vector<int> ranks;            // empty: all
    std::vector<std::string> filters;  // of case ids, one must match; empty: all
};

// Pointers into `cases`, in their order.
std::vector<const Case*> select_cases(const std::vector<Case>& cases, const Selection& selection);

// Clauses whose name matches one of the patterns. Throws suites::BadInput for a pattern that
// matches none, naming those that are alike.
std::vector<const suites::Clause*> select_clauses(const std::vector<std::string>& patterns);

}  // namespace zeroproof::harness
