// Helpers of the clauses on activations, ZeRO-R and tensor parallelism.
#pragma once

#include <functional>
#include <string>

#include "suites/conformance/clause.h"

namespace zeroproof::suites {

// A micro-step of one rank; `peer` is its place in its tensor-parallel group.
struct MicroStepOf {
    const Case& c;
    const Segment& segment;
    int rank;
    int peer;
    const RankEvidence& of_rank;
    const ActivationEvidence& evidence;
};
void for_each_micro_step(const Context& context,
                         const std::function<void(const MicroStepOf&)>& visit);
void for_each_checkpoint(const Context& context,
                         const std::function<void(const MicroStepOf&, std::size_t segment,
                                                  const CheckpointEvidence&)>& visit);

Discrepancy discrepancy(const MicroStepOf& where, std::string quantity, std::string expected,
                        std::string seen);

inline std::size_t at(const memory::BytesByCategory& bytes, memory::Category category) {
    return bytes[static_cast<std::size_t>(category)];
}

// Whether some activations are computed again.
bool keeps_checkpoints(const Case& c);
bool partitions_checkpoints(const Case& c);  // Pa
bool offloads_checkpoints(const Case& c);    // Pa+cpu, or without Pa

// The evidence of each member of a rank's tensor-parallel group, in its order.
std::vector<const RankEvidence*> group_of(const Segment& segment, std::size_t rank);

}  // namespace zeroproof::suites
