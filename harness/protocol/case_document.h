// Cases on their way to a program: cases.json and a file of tensors for each. docs/protocol.md.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/subjects/program_part.h"
#include "suites/conformance/case.h"

namespace zeroproof::harness {

inline constexpr std::string_view kCasesSchema = "zeroproof.cases/1";

// A part of a case's program, as one launch runs it.
struct PartOfCase {
    const suites::Case* c = nullptr;
    ProgramPart part{};
    std::size_t index = 0;  // in the launch
};

// "0007": the folder of its results.
std::string folder_of(const PartOfCase& part);

// Into a folder that exists; all parts are on `ranks` ranks, with indices up to 9999. cases.json
// appears last. Throws Unwritable.
void write_cases(const std::filesystem::path& folder, int ranks, std::span<const PartOfCase> parts);

// For programs written in C++: what write_cases wrote, from the key `definition`.
struct CaseDocument {
    int ranks = 0;
    std::vector<suites::Case> cases;  // by part
    std::vector<PartOfCase> parts;    // point into `cases`

    CaseDocument() = default;
    CaseDocument(CaseDocument&&) = default;
    CaseDocument& operator=(CaseDocument&&) = default;
    CaseDocument(const CaseDocument&) = delete;
    CaseDocument& operator=(const CaseDocument&) = delete;
};
// Throws scenarios::BadInput.
CaseDocument read_cases(const std::filesystem::path& folder);

}  // namespace zeroproof::harness
