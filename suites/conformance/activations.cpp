#include "suites/conformance/activations.h"

#include <fmt/format.h>

#include "suites/conformance/comparison.h"
#include "suites/conformance/transformer_plan.h"

namespace zeroproof::suites {

void for_each_micro_step(const Context& context,
                         const std::function<void(const MicroStepOf&)>& visit) {
    for (const Segment& segment : context.evidence.segments)
        for (std::size_t rank = 0; rank < segment.by_rank.size(); ++rank) {
            const auto group = group_of(segment, rank);
            for (std::size_t peer = 0; peer < group.size(); ++peer)
                for (const ActivationEvidence& evidence : group[peer]->micro_steps)
                    visit({context.c, segment, static_cast<int>(rank), static_cast<int>(peer),
                           *group[peer], evidence});
        }
}

void for_each_checkpoint(const Context& context,
                         const std::function<void(const MicroStepOf&, std::size_t segment,
                                                  const CheckpointEvidence&)>& visit) {
    for_each_micro_step(context, [&](const MicroStepOf& where) {
        for (std::size_t s = 0; s < where.evidence.checkpoints.size(); ++s)
            visit(where, s, where.evidence.checkpoints[s]);
    });
}

Discrepancy discrepancy(const MicroStepOf& where, std::string quantity, std::string expected,
                        std::string seen) {
    return {.quantity = std::move(quantity),
            .expected = std::move(expected),
            .seen = std::move(seen),
            .rank = where.rank,
            .action = where.evidence.action,
            .step = step_number(where.c, where.evidence.action) + 1,
            .diagnosis = is_cut(where.c) ? fmt::format("tensor-parallel rank {} of {}", where.peer,
                                                       where.c.transformer->tensor_parallel)
                                         : std::string()};
}

bool keeps_checkpoints(const Case& c) {
    return trains_transformer(c) && c.transformer->blocks_per_checkpoint > 0;
}

bool partitions_checkpoints(const Case& c) {
    return keeps_checkpoints(c) && c.transformer->partition_checkpoints && is_cut(c);
}

bool offloads_checkpoints(const Case& c) {
    return keeps_checkpoints(c) && c.transformer->offload_checkpoints;
}

std::vector<const RankEvidence*> group_of(const Segment& segment, std::size_t rank) {
    std::vector<const RankEvidence*> group{&segment.by_rank[rank]};
    for (const auto& peers : segment.peers)
        if (rank < peers.size()) group.push_back(&peers[rank]);
    return group;
}

}  // namespace zeroproof::suites
