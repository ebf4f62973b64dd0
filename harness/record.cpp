#include "harness/record.h"

#include <algorithm>
#include <set>

namespace zeroproof::harness {

std::size_t Record::count(Verdict verdict) const {
    std::size_t total = 0;
    for (const CaseResult& result : cases)
        total += static_cast<std::size_t>(std::ranges::count_if(
            result.clauses,
            [&](const ClauseResult& clause) { return clause.judgement.verdict == verdict; }));
    return total;
}

std::size_t Record::unexpected_failures() const {
    std::size_t total = 0;
    for (const CaseResult& result : cases)
        total += static_cast<std::size_t>(
            std::ranges::count_if(result.clauses, [&](const ClauseResult& clause) {
                return clause.judgement.verdict == Verdict::fail && clause.expected_because.empty();
            }));
    return total;
}

namespace {

// Whether an expectation says why the run did not come to its end.
bool breaks_off_as_expected(const CaseResult& result) {
    return result.status == suites::RunStatus::failed &&
           std::ranges::any_of(result.clauses, [](const ClauseResult& clause) {
               return clause.judgement.verdict == Verdict::fail && !clause.expected_because.empty();
           });
}

}  // namespace

std::vector<const suites::Clause*> Record::never_exercised() const {
    std::set<const suites::Clause*> asked;
    std::set<const suites::Clause*> settled;
    for (const CaseResult& result : cases)
        for (const ClauseResult& clause : result.clauses) {
            asked.insert(clause.clause);
            const Verdict verdict = clause.judgement.verdict;
            if (verdict == Verdict::pass || verdict == Verdict::deviates ||
                verdict == Verdict::fail || verdict == Verdict::rejected ||
                verdict == Verdict::not_declared || breaks_off_as_expected(result))
                settled.insert(clause.clause);
        }
    std::vector<const suites::Clause*> never;
    std::ranges::set_difference(asked, settled, std::back_inserter(never));
    std::ranges::sort(never, {}, &suites::Clause::name);
    return never;
}

int exit_code(const Record& record) {
    if (record.count(Verdict::harness_error) > 0) return 5;
    if (record.unexpected_failures() > 0 || !record.broken_expectations.empty()) return 1;
    const auto ran = std::ranges::count_if(record.cases, [](const CaseResult& result) {
        return result.status != suites::RunStatus::environment &&
               result.status != suites::RunStatus::adapter_failed;
    });
    if (ran == 0) return record.cases.empty() ? 3 : 4;
    // A run that broke off, and of which no clause that was asked for tells.
    const bool broke_off = std::ranges::any_of(record.cases, [](const CaseResult& result) {
        const bool is_told = std::ranges::any_of(result.clauses, [](const ClauseResult& clause) {
            return clause.judgement.verdict == Verdict::fail;
        });
        return result.status == suites::RunStatus::failed && !is_told;
    });
    if (broke_off || record.count(Verdict::environment) > 0) return 4;
    return record.never_exercised().empty() ? 0 : 3;
}

}  // namespace zeroproof::harness
