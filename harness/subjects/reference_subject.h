// The built-in reference as a subject: drives reference::Trainer through a case's program and
// writes down what it sees.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "harness/subjects/carrier.h"
#include "harness/subjects/program_part.h"
#include "suites/conformance/subject.h"

namespace zeroproof::harness {

std::unique_ptr<suites::Subject> make_reference_subject(const Carrier& carrier = {});

// One part of a case that the reference supports: what each rank saw, each in its own thread; the
// tensor-parallel ranks of one data-parallel rank side by side.
// `status` and `message` are set only if it did not come to its end.
std::vector<suites::RankEvidence> run_reference_part(const suites::Case& c, const ProgramPart& part,
                                                     std::chrono::milliseconds timeout,
                                                     suites::RunStatus& status,
                                                     std::string& message,
                                                     const Carrier& carrier = {});

}  // namespace zeroproof::harness
