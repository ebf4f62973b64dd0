// Times one collective.
#pragma once

#include "harness/bench/bench_options.h"
#include "harness/bench/team.h"

namespace zeroproof::harness {

struct OperationPlan {
    collectives::Op op = collectives::Op::all_reduce;
    std::string algorithm;  // native, or one of collectives::algorithms() for that operation
    memory::DType type = memory::DType::fp32;
    std::uint64_t bytes = 0;  // asked for, of the logical tensor; whole_bytes() are measured
};

// Collective; the result is the same on every rank. Of each repeat every element of the output is
// compared with what must come out, and what the algorithm has sent with its schedule: throws
// WrongResult on every rank if anything differs.
OperationResult time_operation(Team& team, const OperationPlan& plan,
                               const collectives::Topology& topology, const Measuring& measuring);

// Of the logical tensor that is measured where `bytes` are asked for: whole elements, and as many
// for each rank where the operation's parts are equal.
std::uint64_t whole_bytes(collectives::Op op, memory::DType type, std::uint64_t bytes, int ranks);

// What a rank must at least send for each byte of the logical tensor, over N ranks, and how that is
// written.
double bus_factor(collectives::Op op, int ranks);
std::string bus_formula(collectives::Op op);

// No algorithm can have more bus bandwidth: what must enter or leave each node, or each rank,
// takes so long by the bandwidths that the topology gives. Empty if it does not give them.
std::optional<double> bus_limit_bytes_per_s(collectives::Op op,
                                            const collectives::Topology& topology);

}  // namespace zeroproof::harness
