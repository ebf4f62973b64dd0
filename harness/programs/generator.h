// Random cases: set-ups and programs of actions, weighted towards the edges.
#pragma once

#include <cstdint>
#include <vector>

#include "suites/conformance/declaration.h"

namespace zeroproof::harness {

using suites::Case;

// What may be drawn from: within a declaration, and what the user asked for of it.
struct ProgramSpace {
    const suites::Declaration& declaration;
    std::vector<int> stages;  // not empty
    std::vector<int> ranks;   // not empty; of the beginning and of a reload
};

// Numbers of ranks that the generator takes by itself.
inline constexpr int kMostRanks = 4;

// Program `number` of a seed: the same whenever it is asked for in the same space. A family of its
// own text gives an equal case, and a verdict can be given of it.
Case random_case(const ProgramSpace& space, std::uint64_t seed, std::uint64_t number);
// The number of such a case, or of what has been made of it.
std::uint64_t program_number(const Case& c);

}  // namespace zeroproof::harness
