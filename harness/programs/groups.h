// Failures that look alike.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "harness/record.h"

namespace zeroproof::harness {

// A failing program, shrunk, and how it fails.
struct Finding {
    std::unique_ptr<Case> smallest;
    CaseResult result;  // of it
    const suites::Clause* clause = nullptr;
    std::uint64_t program = 0;  // its number
    double found_after = 0;     // seconds from the beginning
    bool fails_again = true;    // when it is run another time
    bool is_minimal = true;     // and not only what there was time for

    // The judgement of its clause; null if the clause holds when the case is run again.
    const ClauseResult* failure() const;
};

struct FindingGroup {
    Finding example;  // the simplest
    std::string cause;
    std::set<std::string> features;  // that shrinking left
    std::size_t programs = 1;
    std::uint64_t first_program = 0;
    double found_after = 0;  // of the first
    std::set<int> stages;    // in which it was seen
};

// Puts it to those of its cause: the clause, the quantity without its numbers, and the features
// that shrinking left, but for the stage. What is not minimal goes by clause and quantity alone.
void add_finding(std::vector<FindingGroup>& groups, Finding finding);

// The group that a failing program may belong to as it is, or null: it fails the same clause in a
// stage in which the group was seen, and has whatever was left of it.
FindingGroup* group_like(std::vector<FindingGroup>& groups, const suites::Clause& clause,
                         const Case& failing);

// Of the clauses that a case fails the one to shrink for: what others follow from comes first.
const suites::Clause* root_failure(const CaseResult& result);

}  // namespace zeroproof::harness
