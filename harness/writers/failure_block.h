// What is said of one failure, wherever it is shown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/record.h"

namespace zeroproof::harness {

struct Field {
    std::string_view label;
    std::string value;
    bool whole = false;  // to be copied: not wrapped
};

struct FailureBlock {
    const suites::Clause* clause;
    std::vector<Field> fields;  // printable, none empty
};

// Of a result whose verdict is fail. `others` is said of the cases and places that are like it.
FailureBlock failure_block(const Record& record, const CaseResult& result,
                           const ClauseResult& clause, std::string others);

// One block for each clause that fails where no expectation covers it: its first case.
std::vector<FailureBlock> failure_blocks(const Record& record);

// The sentence and the fields, without the clause's name; no line is much longer than 100 columns
// but for those that are to be copied.
std::vector<std::string> lines_of(const FailureBlock& block);

// The command that runs one clause of one case again.
std::string rerun_command(const Record& record, const suites::Clause& clause, const Case& c);

bool is_unexpected_failure(const ClauseResult& result);

}  // namespace zeroproof::harness
