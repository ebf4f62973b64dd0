// The record of a run: everything that its reports show, and nothing that is not in it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "suites/conformance/clause.h"

namespace zeroproof::harness {

using suites::Case;
using suites::Verdict;

// Changes when a field changes its meaning or goes.
inline constexpr int kRecordVersion = 1;

struct ClauseResult {
    const suites::Clause* clause;
    suites::Judgement judgement;
    // Set by an expectations file: this failure is known, for this reason.
    std::string expected_because{};
};

struct CaseResult {
    const Case* c = nullptr;
    suites::RunStatus status = suites::RunStatus::completed;
    std::string message;  // of a run that did not complete
    double seconds = 0;
    std::vector<ClauseResult> clauses;
};

// What one case shows of bytes and elements, beside the formulas. Of rank 0, per step.
struct Measurement {
    const Case* c = nullptr;
    std::size_t phi = 0;
    std::string bytes_formula;  // "4 phi + 12 phi / N"
    double bytes_nominal = 0;
    std::size_t bytes_exact = 0;  // with the padding of the partition
    std::size_t bytes_seen = 0;
    std::string elements_formula;  // "2 phi"; before the factor (N - 1) / N
    double elements_nominal = 0;
    std::size_t elements_exact = 0;  // nominal, with padding
    std::size_t elements_seen = 0;   // nominal, as counted
    double elements_sent = 0;        // that left the rank: seen times (N - 1) / N
};

struct Record {
    std::string subject;
    std::string command;                            // as typed
    std::optional<std::string> subject_argument{};  // as typed, if it is not the subject's name
    std::string rerun_options;  // what a single case needs to be run again, beside its id
    std::string started;        // UTC, ISO 8601
    double seconds = 0;
    int jobs = 1;
    std::uint64_t seed = 1;
    std::vector<CaseResult> cases;
    std::vector<Measurement> measurements;
    // What an expectations file promised and did not come: unexpected passes, stale rows.
    std::vector<std::string> broken_expectations;

    std::size_t count(Verdict verdict) const;
    // Failures that no expectation covers.
    std::size_t unexpected_failures() const;
    // Clauses that passed nowhere and failed nowhere, of those that were asked for, unless an
    // expectation says why a run that would have shown them did not come to its end.
    std::vector<const suites::Clause*> never_exercised() const;
};

// 0 conforms, 1 violation, 3 inconclusive, 4 the subject failed to run, 5 a fault of the harness.
int exit_code(const Record& record);

}  // namespace zeroproof::harness
