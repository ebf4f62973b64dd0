#include "harness/writers/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/writers/text.h"

namespace zeroproof::harness {

namespace {

constexpr Verdict kVerdicts[] = {
    Verdict::pass,           Verdict::deviates,     Verdict::fail,
    Verdict::rejected,       Verdict::not_declared, Verdict::not_exercised,
    Verdict::not_observable, Verdict::environment,  Verdict::harness_error};

// What may be said once clauses have passed: all of them, somewhere.
struct Claim {
    std::string_view words;
    std::vector<std::string_view> clauses;
};
const std::vector<Claim>& claims() {
    static const std::vector<Claim> all = {
        {"training equals plain data-parallel Adam, element by element: reduced gradients, both "
         "moments, master weights and weights",
         {"GRADIENT.MEAN", "MOMENT.FIRST", "MOMENT.SECOND", "MASTER.VALUE", "WEIGHT.CAST"}},
        {"a window of several micro-steps takes each of them once", {"GRADIENT.ACCUMULATION"}},
        {"model states take the bytes of the formulas",
         {"MEMORY.PARAMETER", "MEMORY.GRADIENT", "MEMORY.OPTIMIZER"}},
        {"gradients and weights travel in the volumes of the formulas",
         {"TRAFFIC.GRADIENT", "TRAFFIC.PARAMETER"}},
        {"all ranks skip a step together, and a skipped step changes nothing",
         {"SKIP.AGREEMENT", "SKIP.ATOMIC"}},
        {"training goes on after a load as if it had not stopped", {"CHECKPOINT.CONTINUE"}},
        {"completion as late as the wait finds no race", {"RACE.INPUT", "RACE.OUTPUT"}},
        {"collectives deliver what they should", {"TRANSPORT.REDUCTION", "TRANSPORT.PLACEMENT"}},
    };
    return all;
}

std::string what_ran(const Record& record) {
    const std::size_t cases = record.cases.size();
    std::string text =
        fmt::format("{}: {}", printable(record.subject), counted(cases, "configuration"));
    if (record.seconds > 0)
        text += fmt::format(" in {:.2f} s, {} a second", record.seconds,
                            number(std::round(static_cast<double>(cases) / record.seconds)));
    return text + ".";
}

std::string verdicts_of(const Record& record) {
    std::size_t all = 0;
    std::vector<std::string> kinds;
    for (const Verdict verdict : kVerdicts) {
        const std::size_t count = record.count(verdict);
        all += count;
        if (count == 0 && verdict != Verdict::pass && verdict != Verdict::fail) continue;
        std::string kind = fmt::format("{} {}", count, suites::name_of(verdict));
        const std::size_t expected =
            verdict == Verdict::fail ? count - record.unexpected_failures() : 0;
        if (expected > 0) kind += fmt::format(" ({} of them expected)", expected);
        kinds.push_back(std::move(kind));
    }
    return fmt::format("{}: {}.", counted(all, "verdict"), fmt::join(kinds, ", "));
}

std::string proof_of(const Record& record) {
    std::set<std::string_view> passed;
    std::set<std::string_view> failed;
    for (const CaseResult& result : record.cases)
        for (const ClauseResult& clause : result.clauses) {
            if (clause.judgement.verdict == Verdict::pass) passed.insert(clause.clause->name);
            if (clause.judgement.verdict == Verdict::fail) failed.insert(clause.clause->name);
        }
    if (!failed.empty()) {
        std::set<std::string_view> settled = passed;
        settled.insert(failed.begin(), failed.end());
        return fmt::format("{} of {} that came to a verdict failed.", failed.size(),
                           counted(settled.size(), "clause"));
    }
    std::vector<std::string_view> words;
    for (const Claim& claim : claims())
        if (std::ranges::all_of(claim.clauses, [&](auto name) { return passed.contains(name); }))
            words.push_back(claim.words);
    if (passed.empty()) return "Nothing was proved.";
    if (words.empty())
        return fmt::format("{} passed wherever exercised.", counted(passed.size(), "clause"));
    return fmt::format("Proved wherever exercised: {}.", fmt::join(words, "; "));
}

std::string failures_of(const Record& record, const Summary& summary) {
    std::vector<std::string> parts;
    if (!summary.failures.empty())
        parts.push_back(fmt::format("{} failed", counted(summary.failures.size(), "clause")));
    const std::size_t broken = record.broken_expectations.size();
    if (broken > 0) parts.push_back(fmt::format("{} broken", counted(broken, "expectation")));
    return fmt::format("{}", fmt::join(parts, ", "));
}

void conclude(const Record& record, Summary& summary) {
    const int code = exit_code(record);
    std::string because;
    summary.outcome = Outcome::inconclusive;
    switch (code) {
        case 0:
            summary.outcome = Outcome::conforms;
            because = "nothing failed, and every clause came to a verdict";
            break;
        case 1:
            summary.outcome = Outcome::violates;
            because = failures_of(record, summary);
            break;
        case 3:
            because = record.cases.empty()
                          ? "nothing ran"
                          : fmt::format("nothing failed, but {} came to no verdict",
                                        counted(record.never_exercised().size(), "clause"));
            break;
        case 4: because = "the subject or its adapter failed to run"; break;
        default: because = "a fault of the harness"; break;
    }
    const std::string failures = failures_of(record, summary);
    if (summary.outcome == Outcome::inconclusive && !failures.empty())
        because += "; beside it, " + failures;
    constexpr std::string_view words[] = {"conforms", "does NOT conform", "inconclusive"};
    summary.conclusion =
        fmt::format("{}: {} (exit code {}: {})", printable(record.subject),
                    words[static_cast<std::size_t>(summary.outcome)], code, because);
}

}  // namespace

Summary summarise(const Record& record, std::size_t most_measurement_rows) {
    Summary summary{.headline = {what_ran(record), verdicts_of(record), proof_of(record)},
                    .matrix = matrix_of(record),
                    .measurements = measurement_table(record, most_measurement_rows),
                    .failures = failure_blocks(record),
                    .sections = remarks_on(record),
                    .outcome = Outcome::inconclusive,
                    .conclusion = {}};
    conclude(record, summary);
    return summary;
}

}  // namespace zeroproof::harness
