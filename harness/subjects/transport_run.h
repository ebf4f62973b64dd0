// Runs the self-test of a transport.
#pragma once

#include <chrono>
#include <vector>

#include "collectives/communicator.h"
#include "harness/subjects/carrier.h"
#include "suites/conformance/evidence.h"

namespace zeroproof::harness {

// What one rank got from one operation of the case.
struct TransportOutput {
    std::vector<double> values;
    bool repeatable = true;
};

// On each rank of a transport: every operation of the case, twice.
std::vector<TransportOutput> run_transport_rank(const suites::Case& c,
                                                collectives::Communicator& group);

// What the ranks of a case got, put together. A rank that did not come to its end has got less.
std::vector<suites::TransportResult> joined_transport(
    const suites::Case& c, std::vector<std::vector<TransportOutput>> by_rank);

// With threads for ranks.
suites::Evidence run_transport(const suites::Case& c, std::chrono::milliseconds timeout,
                               const Carrier& carrier = {});

}  // namespace zeroproof::harness
