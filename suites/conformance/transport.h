// What the self-test of a transport feeds, and what must come out.
#pragma once

#include <string>
#include <vector>

#include "collectives/communicator.h"
#include "suites/conformance/case.h"

namespace zeroproof::suites {

enum class TransportInput {
    exact,         // small multiples of N: any order and type of accumulation gives the same bits
    beyond_range,  // 40000 on each rank: their sum leaves fp16, their mean does not
    accumulating   // 2^mantissa on rank 0 and 1 elsewhere: lost if 16-bit types add up in 16 bits
};

struct TransportOperation {
    std::string name;
    collectives::Op op;
    collectives::Reduction reduction = collectives::Reduction::none;
    TransportInput input = TransportInput::exact;
    double large = 0;  // on rank 0, if accumulating
};

// What a type can do: every collective, each reduction, and one step of a ring of sends. The root
// of broadcast and reduce is the last rank.
std::vector<TransportOperation> transport_operations(memory::DType type, int ranks);

double transport_input(const TransportOperation& operation, int ranks, int rank,
                       std::size_t element);
// Elements that each rank puts in and gets out, for a count as in collectives::Operation.
struct TransportCounts {
    std::size_t in;
    std::size_t out;
};
TransportCounts transport_counts(const TransportOperation& operation, int ranks, int rank,
                                 std::size_t count);
// What `rank` must get: from a plain loop over the ranks, rounded once to the type.
std::vector<double> transport_output(const TransportOperation& operation,
                                     const TransportCase& transport, int ranks, int rank);

}  // namespace zeroproof::suites
