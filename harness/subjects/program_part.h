// A case's program, cut where the ranks end and others go on.
#pragma once

#include <filesystem>
#include <vector>

#include "suites/conformance/case.h"

namespace zeroproof::harness {

// Actions [begin, end) of the program, on these ranks at this stage.
struct ProgramPart {
    int ranks;
    int stage;
    std::size_t begin;
    std::size_t end;
    std::filesystem::path load_from;  // empty: start anew
    std::filesystem::path save_to;    // empty: do not save
    std::filesystem::path between;    // for what the program saves and loads on its way
};

// One part, or two around the reload, which the second begins with. What is saved goes into folders
// that are made in `folder`, which may be empty for a case that saves nothing.
std::vector<ProgramPart> parts_of(const suites::Case& c, const std::filesystem::path& folder);

// Whether anything is saved.
bool saves(const suites::Case& c);

}  // namespace zeroproof::harness
