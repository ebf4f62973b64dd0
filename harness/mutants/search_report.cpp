// The views of a search with random programs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/mutants/command.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {

namespace {

bool is_found(const MutantResult& result) {
    return result.outcome == MutantOutcome::killed ||
           result.outcome == MutantOutcome::killed_by_another;
}

}  // namespace

SearchScore search_score(const std::vector<MutantResult>& results) {
    SearchScore score;
    std::vector<double> times;
    for (const MutantResult& result : results) {
        score.all += result.outcome != MutantOutcome::not_built;
        if (!is_found(result)) continue;
        ++score.found;
        if (result.found_after) times.push_back(*result.found_after);
    }
    if (score.all > 0)
        score.share = static_cast<double>(score.found) / static_cast<double>(score.all);
    if (!times.empty()) {
        std::ranges::sort(times);
        score.median = (times[(times.size() - 1) / 2] + times[times.size() / 2]) / 2;
    }
    return score;
}

std::string search_to_terminal(const std::vector<MutantResult>& results,
                               const MutantOptions& options, double seconds) {
    std::string text;
    for (const MutantResult& result : results) {
        if (is_found(result)) continue;
        text += fmt::format("{}: {} ({}, killed by {} in the catalogue's cases)\n",
                            name_of(result.outcome), result.mutant.name, result.mutant.fault_class,
                            result.mutant.killed_by);
        if (!result.note.empty()) text += fmt::format("      {}\n", result.note);
    }
    const SearchScore score = search_score(results);
    text += fmt::format("found {} of {} mutants ({:.1f} %) by random programs of {} s each",
                        score.found, score.all, 100 * score.share, options.fuzz_seconds);
    if (score.median) text += fmt::format(", half of them within {:.2f} s", *score.median);
    return text + fmt::format("; seed {}, {:.1f} s in all\n", options.seed, seconds);
}

std::string search_to_json(const std::vector<MutantResult>& results, const MutantOptions& options,
                           double seconds) {
    scenarios::Json mutants = scenarios::Json::array();
    for (const MutantResult& result : results) {
        scenarios::Json json{{"name", result.mutant.name},
                             {"class", result.mutant.fault_class},
                             {"killed_by", result.mutant.killed_by},
                             {"outcome", name_of(result.outcome)},
                             {"found", is_found(result)},
                             {"found_after_seconds", nullptr},
                             {"failed", result.killers},
                             {"note", result.note}};
        if (result.found_after) json["found_after_seconds"] = *result.found_after;
        mutants.push_back(std::move(json));
    }
    const SearchScore score = search_score(results);
    scenarios::Json document{{"mutants", std::move(mutants)},
                             {"fuzz_seconds", options.fuzz_seconds},
                             {"seed", options.seed},
                             {"found", score.found},
                             {"all", score.all},
                             {"share_found", score.share},
                             {"median_seconds", nullptr},
                             {"seconds", seconds}};
    if (score.median) document["median_seconds"] = *score.median;
    return document.dump(1, ' ', false, scenarios::Json::error_handler_t::replace) + '\n';
}

}  // namespace zeroproof::harness
