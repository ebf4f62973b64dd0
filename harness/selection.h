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
    std::size_t sample = 0;            // most cases of a family, spread over it; 0: all
};

// Pointers into `cases`, in their order. Of the declaration's stages, ranks and precisions, unless
// the selection asks for others; of what it does not support beyond these only families that are
// there to be refused.
std::vector<const Case*> select_cases(const std::vector<Case>& cases, const Selection& selection,
                                      const suites::Declaration& declaration);

// Clauses whose name matches one of the patterns. Throws scenarios::BadInput for a pattern that
// matches none, naming those that are alike.
std::vector<const suites::Clause*> select_clauses(const std::vector<std::string>& patterns);

}  // namespace zeroproof::harness
