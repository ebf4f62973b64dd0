// Model parallelism as ZeRO-R needs it: activations are replicated over tensor-parallel ranks.
#include <algorithm>
#include <cmath>

#include "scenarios/planner/planned_transformer.h"
#include "suites/conformance/activations.h"
#include "suites/conformance/comparison.h"

namespace zeroproof::suites {

std::vector<Clause> tensor_parallel_clauses();

namespace {

using collectives::Op;
using collectives::Traffic;
using memory::Phase;

// Two all-reduces of s b h a block, each 2 s b h elements: in forward, in backward, and once more
// in backward where the block is computed again.
Judgement traffic(const Context& context) {
    const TransformerCase& t = *context.c.transformer;
    const std::size_t pass = 2 * t.model.layers;
    Comparison comparison;
    for_each_micro_step(context, [&](const MicroStepOf& where) {
        for (const Phase phase : {Phase::forward, Phase::backward}) {
            const bool again = phase == Phase::backward && t.blocks_per_checkpoint > 0;
            const std::size_t expected = again ? 2 * pass : pass;
            std::size_t operations = 0;
            std::size_t elements = 0;
            for (std::size_t i = 0; i < where.of_rank.collectives.size(); ++i) {
                const collectives::CollectiveRecord& record = where.of_rank.collectives[i];
                if (record.traffic != Traffic::activation || record.phase != phase ||
                    where.of_rank.collective_actions[i] != where.evidence.action)
                    continue;
                ++operations;
                elements += nominal_elements(record);
            }
            comparison.check(
                operations == expected && elements == expected * 2 * t.stream_elements(), [&] {
                    return discrepancy(
                        where,
                        fmt::format("sums of activations over the group in {}",
                                    memory::name_of(phase)),
                        fmt::format("{} all-reduces, {} elements", expected,
                                    expected * 2 * t.stream_elements()),
                        fmt::format("{} operations, {} elements", operations, elements));
                });
        }
    });
    return comparison.judgement("no micro-step");
}

std::vector<bool> shards_of(const Case& c) {
    std::vector<bool> shards;
    const auto ranks = static_cast<std::size_t>(c.transformer->tensor_parallel);
    for (const auto& parameter : scenarios::planned_model(c.transformer->model, ranks).parameters)
        shards.push_back(parameter.is_shard);
    return shards;
}

// Of parameters that every member of a group has a copy of; and of what they keep of activations.
Judgement replicas(const Context& context) {
    const std::vector<bool> shards = shards_of(context.c);
    Comparison comparison;
    for (const Segment& segment : context.evidence.segments)
        for (std::size_t rank = 0; rank < segment.by_rank.size(); ++rank) {
            const auto group = group_of(segment, rank);
            for (std::size_t peer = 1; peer < group.size(); ++peer)
                for (std::size_t s = 0; s < group[peer]->snapshots.size(); ++s) {
                    const Snapshot& ours = group[peer]->snapshots[s];
                    const Snapshot& first = group.front()->snapshots.at(s);
                    for (std::size_t p = 0; p < ours.weights.size(); ++p) {
                        if (shards[p]) continue;
                        for (std::size_t e = 0; e < ours.weights[p].size(); ++e)
                            comparison.check(
                                same_bits(ours.weights[p][e], first.weights[p][e]), [&] {
                                    return Discrepancy{
                                        .quantity =
                                            "weight, against that of the group's first rank",
                                        .expected = full(double{first.weights[p][e]}),
                                        .seen = full(double{ours.weights[p][e]}),
                                        .rank = static_cast<int>(rank),
                                        .action = ours.action,
                                        .step = step_number(context.c, ours.action),
                                        .parameter = context.c.parameters[p].name,
                                        .element = static_cast<long long>(e),
                                        .diagnosis = fmt::format(
                                            "tensor-parallel rank {}: copies have drifted apart",
                                            peer)};
                                });
                    }
                }
        }
    return comparison.judgement("no snapshot");
}

Judgement same_stream(const Context& context) {
    Comparison comparison;
    for (const Segment& segment : context.evidence.segments)
        for (std::size_t rank = 0; rank < segment.by_rank.size(); ++rank) {
            const auto group = group_of(segment, rank);
            for (std::size_t peer = 1; peer < group.size(); ++peer)
                for (std::size_t m = 0; m < group[peer]->micro_steps.size(); ++m) {
                    const ActivationEvidence& ours = group[peer]->micro_steps[m];
                    const ActivationEvidence& first = group.front()->micro_steps.at(m);
                    const MicroStepOf where{
                        context.c,    segment, static_cast<int>(rank), static_cast<int>(peer),
                        *group[peer], ours};
                    comparison.check(ours.loss == first.loss, [&] {
                        return discrepancy(where, "loss, against that of the group's first rank",
                                           full(first.loss), full(ours.loss));
                    });
                    for (std::size_t s = 0; s < ours.checkpoints.size(); ++s)
                        comparison.check(
                            ours.checkpoints[s].stored == first.checkpoints[s].stored, [&] {
                                return discrepancy(
                                    where,
                                    fmt::format("input of segment {}, against that of the group's "
                                                "first rank",
                                                s),
                                    "the same bits", "others");
                            });
                }
        }
    return comparison.judgement("no micro-step");
}

// Cut or not, a model sums the same products, in another order. To first order each of the
// additions on the longest way through the model, there and back, moves a value by half a unit in
// the last place of the largest; normalizations are taken to amplify nothing.
double reordering_error(const TransformerCase& t) {
    const scenarios::TransformerModel& m = t.model;
    const std::size_t of_block = 4 * m.hidden + 2 * m.sequence + 2 * m.feed_forward;
    const std::size_t additions = 2 * m.layers * of_block + m.hidden + m.vocabulary;
    return static_cast<double>(additions) * 0x1p-24;
}

// Until the first step: Adam would make of a gradient that is almost zero a step of full size.
Judgement whole(const Context& context) {
    if (const auto without = without_twin(context)) return *without;
    const std::vector<bool> shards = shards_of(context.c);
    const auto first_step = std::ranges::find(context.c.program, ActionKind::step, &Action::kind) -
                            context.c.program.begin();
    const double error = reordering_error(*context.c.transformer);
    const std::vector<RankEvidence>& uncut = context.twin->segments.front().by_rank;
    Comparison comparison;
    for_each_micro_step(context, [&](const MicroStepOf& where) {
        if (where.evidence.action > first_step) return;
        const auto number =
            static_cast<std::size_t>(&where.evidence - where.of_rank.micro_steps.data());
        const ActivationEvidence& other =
            uncut[static_cast<std::size_t>(where.rank)].micro_steps.at(number);
        const Bounded loss{other.loss, error * std::max(1.0, std::abs(other.loss))};
        comparison.check(matches(where.evidence.loss, loss), [&] {
            return discrepancy(where, "loss, against that of the uncut model", full(loss),
                               full(where.evidence.loss));
        });
        for (std::size_t p = 0; p < other.gradients.size(); ++p) {
            if (shards[p]) continue;
            for (std::size_t use = 0; use < other.gradients[p].size(); ++use) {
                const std::vector<float>& theirs = other.gradients[p][use];
                float largest = 0;
                for (const float g : theirs) largest = std::max(largest, std::abs(g));
                for (std::size_t e = 0; e < theirs.size(); ++e) {
                    const Bounded expected{double{theirs[e]}, error * double{largest}};
                    const double seen = where.evidence.gradients[p][use].at(e);
                    comparison.check(matches(seen, expected), [&] {
                        Discrepancy found = discrepancy(
                            where, "gradient of the rank, against that of the uncut model",
                            full(expected), full(seen));
                        found.parameter = context.c.parameters[p].name;
                        found.element = static_cast<long long>(e);
                        return found;
                    });
                }
            }
        }
    });
    return comparison.judgement("no micro-step before a step");
}

// Over the whole model: of what is cut every part, of what is copied one copy.
Judgement norm(const Context& context) {
    const std::vector<bool> shards = shards_of(context.c);
    Comparison comparison;
    for (const Segment& segment : context.evidence.segments) {
        if (segment.by_rank.empty()) continue;
        for (std::size_t s = 0; s < segment.by_rank.front().snapshots.size(); ++s) {
            const Snapshot& first = segment.by_rank.front().snapshots[s];
            if (first.kind != ActionKind::step || first.action < 0 || first.skipped) continue;
            double sum = 0;
            std::size_t elements = 0;
            const bool replicated = segment.stage == 0;  // each rank owns everything
            for (std::size_t rank = 0; rank < (replicated ? 1 : segment.by_rank.size()); ++rank) {
                const auto group = group_of(segment, rank);
                for (std::size_t peer = 0; peer < group.size(); ++peer)
                    for (const OwnedSlice& slice : group[peer]->snapshots.at(s).owned) {
                        if (peer > 0 && !shards[slice.parameter]) continue;
                        for (const float g : slice.gradient) sum += double{g} * double{g};
                        elements += slice.gradient.size();
                    }
            }
            // Each addition rounds in double, whatever their order.
            const double expected = std::sqrt(sum);
            const double error = expected * static_cast<double>(elements) * 0x1p-52;
            for (std::size_t rank = 0; rank < segment.by_rank.size(); ++rank)
                for (const RankEvidence* member : group_of(segment, rank)) {
                    const double seen = member->snapshots.at(s).norm;
                    comparison.check(std::abs(seen - expected) <= error, [&] {
                        return Discrepancy{.quantity = "norm of the whole model's gradient",
                                           .expected = full(Bounded{expected, error}),
                                           .seen = full(seen),
                                           .rank = static_cast<int>(rank),
                                           .action = first.action,
                                           .step = step_number(context.c, first.action)};
                    });
                }
        }
    }
    return comparison.judgement("no step was taken");
}

bool is_cut_transformer(const Case& c) {
    return trains_transformer(c) && is_cut(c);
}

bool has_uncut_twin(const Case& c) {
    return is_cut_transformer(c) && c.twin_of == "tensor parallelism";
}

constexpr std::string_view kMegatron = "arXiv 1909.08053, section 3; arXiv 1910.02054, section 8";

}  // namespace

std::vector<Clause> tensor_parallel_clauses() {
    return {
        {"TENSOR.TRAFFIC",
         "A block whose weights are cut sums its stream twice in forward and twice in backward, "
         "and "
         "twice more where it is computed again: 12 s b h elements with activation checkpoints.",
         kMegatron,
         "FC35, FC42, VOL",
         "not exercised: no micro-step",
         is_cut_transformer,
         traffic,
         {Observation::collectives}},
        {"TENSOR.REPLICAS",
         "Parameters that are not cut have the same bits on all ranks of a tensor-parallel group, "
         "after every action.",
         kMegatron,
         "FC35, GROUP",
         "not exercised: no snapshot",
         is_cut_transformer,
         replicas,
         {Observation::weights}},
        {"TENSOR.STREAM",
         "What flows between blocks, and the loss, have the same bits on all ranks of a "
         "tensor-parallel group: a checkpoint of it may be partitioned.",
         "arXiv 1910.02054, section 6.1",
         "FC35, FC45",
         "not exercised: no micro-step",
         is_cut_transformer,
         same_stream,
         {Observation::live_bytes}},
        {"TENSOR.WHOLE",
         "Cut or not, the model has the same loss and the same gradients, but for the order of its "
         "sums: until the first step, and of parameters that are not cut.",
         kMegatron,
         "FC35, GROUP",
         "not exercised: the twin could not run here",
         has_uncut_twin,
         whole,
         {Observation::live_bytes}},
        {"TENSOR.NORM",
         "The norm is of the whole model: of what is cut each part counts, of what every rank has "
         "a "
         "copy of one copy, and all ranks use the same.",
         "docs/specification.md, Norm",
         "FC17, NORM",
         "not exercised: no step was taken",
         is_cut_transformer,
         norm,
         {Observation::norm, Observation::gradient}},
    };
}

}  // namespace zeroproof::suites
