// Families of cases: one JSON file each, swept over ranks, stages, types and sizes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "suites/conformance/case.h"

namespace zeroproof::suites {

struct FamilyFile {
    std::string_view name;
    std::string_view text;
};

// Those in cases/, put into the program when it is built.
const std::vector<FamilyFile>& family_files();

// A case for each combination of the values under "sweep", the others as given. Throws BadInput.
std::vector<Case> read_family(std::string_view text, const std::string& file);

// Every case of every built-in family, by family name and then in the order of their sweeps.
std::vector<Case> all_cases();

}  // namespace zeroproof::suites
