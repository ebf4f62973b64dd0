#include "harness/selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>

#include "suites/conformance/json_reader.h"

namespace zeroproof::harness {

bool matches_pattern(const std::string& pattern, const std::string& text) {
    if (pattern.find_first_of("*?[") == std::string::npos)
        return text.find(pattern) != std::string::npos;
    return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

std::vector<const Case*> select_cases(const std::vector<Case>& cases, const Selection& selection) {
    const auto wanted = [](const auto& values, const auto& value) {
        return values.empty() || std::ranges::count(values, value) > 0;
    };
    // An id stands for itself alone, whatever else it is a part of and whatever it holds.
    std::vector<std::string> ids;
    std::vector<std::string> patterns;
    for (const std::string& filter : selection.filters)
        (std::ranges::count(cases, filter, &Case::id) > 0 ? ids : patterns).push_back(filter);
    const auto passes_filter = [&](const Case& c) {
        return selection.filters.empty() || std::ranges::count(ids, c.id) > 0 ||
               std::ranges::any_of(patterns, [&](const std::string& pattern) {
                   return matches_pattern(pattern, c.id);
               });
    };
    std::vector<const Case*> chosen;
    for (const Case& c : cases) {
        // A test of the transport has no stage: it is left out when stages are asked for.
        if (!selection.stages.empty() && (c.transport || !wanted(selection.stages, c.stage)))
            continue;
        if (wanted(selection.ranks, c.ranks) && passes_filter(c)) chosen.push_back(&c);
    }
    return chosen;
}

std::vector<const suites::Clause*> select_clauses(const std::vector<std::string>& patterns) {
    std::vector<const suites::Clause*> chosen;
    for (const std::string& pattern : patterns) {
        const std::size_t before = chosen.size();
        for (const suites::Clause& clause : suites::all_clauses()) {
            const std::string name(clause.name);
            const bool exact = suites::find_clause(pattern) != nullptr;
            if (exact ? name == pattern : matches_pattern(pattern, name)) chosen.push_back(&clause);
        }
        if (chosen.size() > before) continue;
        std::vector<std::string_view> alike;
        const std::string family = pattern.substr(0, pattern.find('.'));
        for (const suites::Clause& clause : suites::all_clauses())
            if (suites::family_of(clause) == family) alike.push_back(clause.name);
        throw suites::BadInput(
            fmt::format("no clause is named '{}'; {}", pattern,
                        alike.empty() ? "'zeroproof clauses' lists them all"
                                      : fmt::format("there are {}", fmt::join(alike, ", "))));
    }
    return chosen;
}

}  // namespace zeroproof::harness
