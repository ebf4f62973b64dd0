// A subject that has run already: its evidence lies in a folder. docs/vectors.md.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "harness/protocol/case_document.h"
#include "suites/conformance/subject.h"

namespace zeroproof::harness {

// A part of a case, and the folder of its launch within that of the results.
struct RecordedPart {
    std::string launch;
    PartOfCase part;
};

struct RecordedCase {
    suites::Case* c = nullptr;
    std::vector<RecordedPart> parts;
    std::vector<RecordedPart> twin_parts;  // of c->twin.front()
};

struct RecordedOptions {
    suites::Declaration declaration;
    std::filesystem::path results;
    std::vector<RecordedCase> cases;  // all that it is asked for, later on
    bool any_version = false;         // take another version than the declaration is for
};

// Results that are not there are no evidence of anything: their case could not be judged here.
std::unique_ptr<suites::Subject> make_recorded_subject(RecordedOptions options);

}  // namespace zeroproof::harness
