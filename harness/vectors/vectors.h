// Vectors: cases with what is expected of them, for those who have no harness. docs/vectors.md.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/protocol/case_document.h"
#include "harness/subjects/recorded_subject.h"
#include "harness/vectors/index.h"

namespace zeroproof::harness {

// Whether there is an expectation to write down: the case trains, and asks for nothing that an
// implementation would have to refuse.
bool is_vector(const suites::Case& c);

// Writes vectors into a folder, in place of those that are in it. Each file is whole or not there,
// and vectors.json comes last: without it there are no vectors. The same cases make the same bytes.
// Throws Unwritable, and scenarios::BadInput if there are too many of them for one launch.
VectorIndex export_vectors(const std::filesystem::path& folder,
                           const std::vector<const suites::Case*>& cases);

// What export_vectors wrote, read again.
struct Vectors {
    VectorIndex index;
    std::map<std::string, CaseDocument> launches;  // by name
    std::vector<RecordedCase> cases;               // by vector; they point into `launches`
};

// Nothing in it has been changed, and it is what this program writes for these cases. Throws
// scenarios::BadInput, which names the file and the vector.
Vectors load_vectors(const std::filesystem::path& folder);

}  // namespace zeroproof::harness
