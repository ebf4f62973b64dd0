// What `zeroproof mutants` does.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/mutants/run_mutants.h"

namespace zeroproof::harness {

struct MutantOptions {
    std::vector<std::string> catalogues;  // files; empty for those of the source tree
    std::string filter;                   // a glob on names, classes and clauses; empty for all
    int jobs = 0;                         // 0: as many as there are processors
    std::chrono::seconds timeout{20};
    int fuzz_seconds = 0;        // above 0: random programs for so long, in place of the cases
    std::uint64_t seed = 1;      // of these programs, and of one_a_clause
    std::size_t sample = 0;      // most mutants, spread over the catalogue; 0: all
    bool one_a_clause = false;   // of those that a clause is to kill, the seed chooses
    std::filesystem::path json;  // empty: none is written
    bool keep = false;           // the work folder
};

// 0: all killed by the clause that names the fault, or with random programs by any; 1: some were
// not; 2: a catalogue is bad, or nothing is left to do; 5: the build is not usable, or the
// unmodified reference does not conform.
int mutants_command(const MutantOptions& options);

// The views of the results. The score is what was killed by the named clause, of all. Of a whole
// catalogue, not of a filtered one, the text also has the clauses that no mutant is to be killed
// by.
std::string to_json(const std::vector<MutantResult>& results, double seconds);
std::string to_terminal(const std::vector<MutantResult>& results, double seconds, bool whole);

// Of a search with random programs: what of the mutants was found, and how soon.
struct SearchScore {
    std::size_t found = 0;
    std::size_t all = 0;             // that were built
    double share = 0;                // found / all
    std::optional<double> median{};  // seconds, of those found
};
SearchScore search_score(const std::vector<MutantResult>& results);
std::string search_to_json(const std::vector<MutantResult>& results, const MutantOptions& options,
                           double seconds);
std::string search_to_terminal(const std::vector<MutantResult>& results,
                               const MutantOptions& options, double seconds);

}  // namespace zeroproof::harness
