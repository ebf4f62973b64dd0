// vectors.json: which vectors a folder holds, and the checksums of their files. docs/vectors.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "suites/conformance/case.h"

namespace zeroproof::harness {

inline constexpr std::string_view kVectorsSchema = "zeroproof.vectors/1";
inline constexpr std::string_view kIndexFile = "vectors.json";

struct VectorFile {
    std::string path;  // in the folder, of plain names
    std::uint64_t bytes = 0;
    std::string sha256;

    bool operator==(const VectorFile&) const = default;
};

// Parts of cases that run on as many ranks: cases/NAME is a folder of cases as docs/protocol.md
// describes it, and NAME in the folder of results is that of its results.
struct VectorLaunch {
    std::string name;
    int ranks = 1;
    VectorFile cases;  // its cases.json
};

// Where a part of a program is: a launch, and its index there.
struct VectorPart {
    std::string launch;
    std::size_t index = 0;
};

struct VectorTwin {
    std::string differs_in;
    std::vector<VectorPart> parts;
};

struct Vector {
    std::string id;                    // of the case: for ever
    std::vector<std::string> flags;    // classes of faults that it catches
    std::vector<std::string> clauses;  // that judge it
    std::vector<std::string> sources;  // of these clauses
    std::vector<VectorPart> parts;     // two with a reload, otherwise one
    std::optional<VectorTwin> twin;    // a second run to compare with
    std::string expected;              // path of what is expected
    std::vector<VectorFile> files;     // all but the cases.json of its launches
};

struct VectorIndex {
    std::string version;  // of the program that made them
    std::vector<VectorLaunch> launches;
    std::vector<Vector> vectors;
};

// Flags, clauses and sources: those of the clauses that apply to the case.
Vector describe(const suites::Case& c);

// A line for each launch and vector.
std::string to_text(const VectorIndex& index);
// Throws scenarios::BadInput.
VectorIndex read_index(const std::filesystem::path& folder);

// With its size and checksum as they are. Throws scenarios::BadInput if it cannot be read.
VectorFile measure_file(const std::filesystem::path& folder, std::string path);
// Throws scenarios::BadInput for the first file that is not as the index has it: names the file and
// a vector that needs it.
void check_files(const std::filesystem::path& folder, const VectorIndex& index);

}  // namespace zeroproof::harness
