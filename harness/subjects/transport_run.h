// Runs the self-test of the threads' transport.
#pragma once

#include <chrono>

#include "suites/conformance/evidence.h"

namespace zeroproof::harness {

// Every operation of the case, twice.
suites::Evidence run_transport(const suites::Case& c, std::chrono::milliseconds timeout);

}  // namespace zeroproof::harness
