// The built-in reference as a subject: drives reference::Trainer through a case's program and
// writes down what it sees.
#pragma once

#include <memory>

#include "suites/conformance/subject.h"

namespace zeroproof::harness {

std::unique_ptr<suites::Subject> make_reference_subject();

}  // namespace zeroproof::harness
