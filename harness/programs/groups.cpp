#include "harness/programs/groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "harness/programs/simplifications.h"
#include "harness/programs/words.h"

namespace zeroproof::harness {

namespace {

// Families of clauses, causes before their effects. What is not among them comes last.
constexpr std::array<std::string_view, 23> kCausesFirst = {
    "LIVENESS",   "REJECT",      "RACE",   "WEIGHT.INITIAL", "PARTITION", "GRADIENT",
    "TIED",       "UNUSED",      "SKIP",   "SCALE",          "EDIT",      "NORM",
    "CLIP",       "MOMENT",      "STEP",   "DECAY",          "GROUP",     "MASTER",
    "CHECKPOINT", "WEIGHT.CAST", "FROZEN", "WEIGHT",         "EVALUATE"};

std::size_t place_of(const suites::Clause& clause) {
    const auto at = std::ranges::find_if(
        kCausesFirst, [&](std::string_view prefix) { return clause.name.starts_with(prefix); });
    return static_cast<std::size_t>(at - kCausesFirst.begin());
}

std::string without_numbers(const std::string& text) {
    std::string result;
    for (const char letter : text) {
        const bool digit = std::isdigit(static_cast<unsigned char>(letter)) != 0;
        if (!digit)
            result += letter;
        else if (result.empty() || result.back() != '#')
            result += '#';
    }
    return result;
}

std::string cause_of(const Finding& finding, const std::set<std::string>& features) {
    const ClauseResult* failure = finding.failure();
    const std::string quantity =
        failure == nullptr ? "not seen again" : without_numbers(failure->judgement.first.quantity);
    return fmt::format("{}: {}; {}", finding.clause->name, quantity,
                       finding.is_minimal ? fmt::format("{}", fmt::join(features, ", "))
                                          : "not shrunk to the end");
}

}  // namespace

const ClauseResult* Finding::failure() const {
    for (const ClauseResult& one : result.clauses)
        if (one.clause == clause && one.judgement.verdict == Verdict::fail) return &one;
    return nullptr;
}

void add_finding(std::vector<FindingGroup>& groups, Finding finding) {
    std::set<std::string> features = features_of(*finding.smallest);
    std::string cause = cause_of(finding, features);
    const auto at = std::ranges::find(groups, cause, &FindingGroup::cause);
    if (at == groups.end()) {
        FindingGroup group;
        group.cause = std::move(cause);
        if (finding.is_minimal) group.features = std::move(features);
        group.first_program = finding.program;
        group.found_after = finding.found_after;
        group.stages = {finding.smallest->stage};
        group.example = std::move(finding);
        groups.push_back(std::move(group));
        return;
    }
    ++at->programs;
    at->stages.insert(finding.smallest->stage);
    if (complexity(*finding.smallest) < complexity(*at->example.smallest))
        at->example = std::move(finding);
}

FindingGroup* group_like(std::vector<FindingGroup>& groups, const suites::Clause& clause,
                         const Case& failing) {
    const std::set<std::string> features = features_of(failing);
    for (FindingGroup& group : groups)
        if (group.example.clause == &clause && group.example.fails_again &&
            group.stages.contains(failing.stage) && std::ranges::includes(features, group.features))
            return &group;
    return nullptr;
}

const suites::Clause* root_failure(const CaseResult& result) {
    const suites::Clause* root = nullptr;
    for (const ClauseResult& one : result.clauses)
        if (one.judgement.verdict == Verdict::fail &&
            (root == nullptr || place_of(*one.clause) < place_of(*root)))
            root = one.clause;
    return root;
}

}  // namespace zeroproof::harness
