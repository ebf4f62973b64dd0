#include "harness/selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <map>
#include <set>

#include "scenarios/json_reader.h"

namespace zeroproof::harness {

bool matches_pattern(const std::string& pattern, const std::string& text) {
    if (pattern.find_first_of("*?[") == std::string::npos)
        return text.find(pattern) != std::string::npos;
    return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

namespace {

// Whether the subject is to be tried with the case. What it refuses is a case only where that is
// the family's purpose.
bool suits(const Case& c, const suites::Declaration& declaration) {
    if (c.transport) return declaration.tests_transport;
    if (c.transformer && !declaration.trains_transformers) return false;
    if (declaration.undeclared || !c.features.empty()) return true;
    return outside_declaration(c, declaration).empty() &&
           (c.twin.empty() || outside_declaration(c.twin.front(), declaration).empty());
}

// FNV-1a: spreads a sample over a family whatever the order of its sweep.
std::uint64_t spread(const std::string& id) {
    std::uint64_t hash = 0xCBF29CE484222325u;
    for (const char letter : id)
        hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3u;
    return hash;
}

std::vector<const Case*> sampled(const std::vector<const Case*>& cases, std::size_t most) {
    std::map<std::string_view, std::vector<const Case*>> families;
    for (const Case* c : cases) families[c->family].push_back(c);
    std::set<const Case*> kept;
    for (auto& [family, members] : families) {
        std::ranges::stable_sort(members, {}, [](const Case* c) { return spread(c->id); });
        kept.insert(members.begin(),
                    members.begin() + static_cast<std::ptrdiff_t>(std::min(most, members.size())));
    }
    std::vector<const Case*> chosen;
    for (const Case* c : cases)
        if (kept.contains(c)) chosen.push_back(c);
    return chosen;
}

}  // namespace

std::vector<const Case*> select_cases(const std::vector<Case>& cases, const Selection& selection,
                                      const suites::Declaration& declaration) {
    const auto wanted = [](const auto& values, const auto& value) {
        return values.empty() || std::ranges::count(values, value) > 0;
    };
    // An id stands for itself alone, whatever else it is a part of and whatever it holds.
    std::vector<std::string> ids;
    std::vector<std::string> patterns;
    for (const std::string& filter : selection.filters)
        (std::ranges::count(cases, filter, &Case::id) > 0 ? ids : patterns).push_back(filter);
    const auto passes_filter = [&](const Case& c) {
        return selection.filters.empty() ||
               std::ranges::any_of(patterns, [&](const std::string& pattern) {
                   return matches_pattern(pattern, c.id);
               });
    };
    const auto is_usual = [&](const Case& c) {
        return !selection.ranks.empty() ||
               std::max(c.ranks, c.resume_ranks) <= declaration.most_ranks;
    };
    std::vector<const Case*> chosen;
    for (const Case& c : cases) {
        // A test of the transport has no stage: it is left out when stages are asked for.
        if (!selection.stages.empty() && (c.transport || !wanted(selection.stages, c.stage)))
            continue;
        if (!wanted(selection.ranks, c.ranks)) continue;
        const bool by_name = std::ranges::count(ids, c.id) > 0;
        if (by_name || (passes_filter(c) && is_usual(c) && suits(c, declaration)))
            chosen.push_back(&c);
    }
    return selection.sample > 0 ? sampled(chosen, selection.sample) : chosen;
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
        throw scenarios::BadInput(
            fmt::format("no clause is named '{}'; {}", pattern,
                        alike.empty() ? "'zeroproof clauses' lists them all"
                                      : fmt::format("there are {}", fmt::join(alike, ", "))));
    }
    return chosen;
}

}  // namespace zeroproof::harness
