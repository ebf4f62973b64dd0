#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "harness/mutants/command.h"
#include "scenarios/json_reader.h"
#include "suites/conformance/clause.h"

namespace zeroproof::harness {

namespace {

constexpr MutantOutcome kOutcomes[] = {MutantOutcome::killed,   MutantOutcome::killed_by_another,
                                       MutantOutcome::survived, MutantOutcome::not_built,
                                       MutantOutcome::crashed,  MutantOutcome::timed_out};

std::size_t count(const std::vector<MutantResult>& results, MutantOutcome outcome) {
    return static_cast<std::size_t>(std::ranges::count(results, outcome, &MutantResult::outcome));
}

// Clauses that no mutant of these is to be killed by.
std::vector<std::string> untested_clauses(const std::vector<MutantResult>& results) {
    std::vector<std::string> untested;
    for (const suites::Clause& clause : suites::all_clauses())
        if (std::ranges::none_of(results, [&](const MutantResult& result) {
                return result.mutant.killed_by == clause.name;
            }))
            untested.emplace_back(clause.name);
    return untested;
}

std::string indented(const std::string& text) {
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        if (end > at) result += fmt::format("      {}\n", text.substr(at, end - at));
        at = end + 1;
    }
    return result;
}

double score(const std::vector<MutantResult>& results) {
    return results.empty() ? 0
                           : static_cast<double>(count(results, MutantOutcome::killed)) /
                                 static_cast<double>(results.size());
}

}  // namespace

std::string to_terminal(const std::vector<MutantResult>& results, double seconds, bool whole) {
    std::string text;
    std::map<std::string, std::pair<std::size_t, std::size_t>> classes;  // killed, all
    for (const MutantResult& result : results) {
        auto& [killed, all] = classes[result.mutant.fault_class];
        ++all;
        if (result.outcome == MutantOutcome::killed) {
            ++killed;
            continue;
        }
        text += fmt::format("{}: {} ({}, {})\n", name_of(result.outcome), result.mutant.name,
                            result.mutant.fault_class, result.mutant.file);
        text += fmt::format("      expected: killed by {}\n", result.mutant.killed_by);
        if (!result.killers.empty())
            text += fmt::format("      seen: {} failed\n", fmt::join(result.killers, ", "));
        text += fmt::format("      fault: {}\n", result.mutant.why);
        text += indented(result.note);
    }
    if (!text.empty()) text += '\n';
    text += "class   killed by the named clause / all\n";
    for (const auto& [name, counts] : classes)
        text += fmt::format("{:<8}{} / {}\n", name, counts.first, counts.second);
    text += '\n';
    for (const MutantOutcome outcome : kOutcomes)
        text += fmt::format("{:<18}{}\n", name_of(outcome), count(results, outcome));
    if (const auto untested = untested_clauses(results); whole && !untested.empty())
        text += fmt::format("clauses without a mutant: {}\n", fmt::join(untested, ", "));
    text +=
        fmt::format("score {:.1f} % = killed by the named clause / all, {} mutants in {:.1f} s\n",
                    100 * score(results), results.size(), seconds);
    return text;
}

std::string to_json(const std::vector<MutantResult>& results, double seconds) {
    scenarios::Json mutants = scenarios::Json::array();
    for (const MutantResult& result : results)
        mutants.push_back({{"name", result.mutant.name},
                           {"class", result.mutant.fault_class},
                           {"file", result.mutant.file},
                           {"killed_by", result.mutant.killed_by},
                           {"why", result.mutant.why},
                           {"catalogue", result.mutant.catalogue},
                           {"outcome", name_of(result.outcome)},
                           {"failed", result.killers},
                           {"note", result.note},
                           {"build_seconds", result.build_seconds},
                           {"run_seconds", result.run_seconds}});
    scenarios::Json outcomes = scenarios::Json::object();
    for (const MutantOutcome outcome : kOutcomes)
        outcomes[std::string(name_of(outcome))] = count(results, outcome);
    const scenarios::Json document{{"mutants", mutants},
                                   {"outcomes", outcomes},
                                   {"score", score(results)},
                                   {"clauses_without_a_mutant", untested_clauses(results)},
                                   {"seconds", seconds}};
    return document.dump(1, ' ', false, scenarios::Json::error_handler_t::replace) + '\n';
}

}  // namespace zeroproof::harness
