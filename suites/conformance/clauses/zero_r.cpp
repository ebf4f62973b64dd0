// ZeRO-R: partitioned activation checkpoints, constant buffers, contiguous memory.
#include <algorithm>

#include "suites/conformance/activations.h"
#include "suites/conformance/comparison.h"
#include "suites/conformance/partition_model.h"
#include "suites/conformance/transformer_plan.h"

namespace zeroproof::suites {

std::vector<Clause> zero_r_clauses();

namespace {

using collectives::Traffic;
using memory::Category;
using memory::Phase;

// Each rank's part, in the order of the group, and zeros behind the last element.
Judgement placement(const Context& context) {
    Comparison comparison;
    const auto ranks = static_cast<std::size_t>(context.c.transformer->tensor_parallel);
    for_each_checkpoint(context, [&](const MicroStepOf& where, std::size_t segment,
                                     const CheckpointEvidence& checkpoint) {
        const std::size_t part = (checkpoint.stored.size() + ranks - 1) / ranks;
        comparison.check(checkpoint.part.size() == part, [&] {
            return discrepancy(where, fmt::format("elements kept of checkpoint {}", segment),
                               fmt::format("{}, the {}-th part", part, ranks),
                               fmt::format("{}", checkpoint.part.size()));
        });
        const std::size_t begin = static_cast<std::size_t>(where.peer) * part;
        for (std::size_t e = 0; e < std::min(part, checkpoint.part.size()); ++e) {
            const float expected =
                begin + e < checkpoint.stored.size() ? checkpoint.stored[begin + e] : 0.0f;
            comparison.check(same_bits(checkpoint.part[e], expected), [&] {
                Discrepancy d =
                    discrepancy(where, fmt::format("what the rank keeps of checkpoint {}", segment),
                                full(double{expected}), full(double{checkpoint.part[e]}));
                d.element = static_cast<long long>(begin + e);
                return d;
            });
        }
    });
    return comparison.judgement("no checkpoint was taken");
}

// One all-gather of s b h for each checkpoint, in backward.
Judgement gathers(const Context& context) {
    Comparison comparison;
    const auto ranks = static_cast<std::size_t>(context.c.transformer->tensor_parallel);
    const std::size_t segments = recomputed_segments(context.c).size();
    const std::size_t whole =
        (context.c.transformer->stream_elements() + ranks - 1) / ranks * ranks;
    for_each_micro_step(context, [&](const MicroStepOf& where) {
        std::size_t operations = 0;
        std::size_t elements = 0;
        bool elsewhere = false;
        for (std::size_t i = 0; i < where.of_rank.collectives.size(); ++i) {
            const collectives::CollectiveRecord& record = where.of_rank.collectives[i];
            if (record.traffic != Traffic::checkpoint ||
                where.of_rank.collective_actions[i] != where.evidence.action)
                continue;
            ++operations;
            elements += nominal_elements(record);
            elsewhere = elsewhere || record.phase != Phase::backward ||
                        record.op != collectives::Op::all_gather;
        }
        comparison.check(operations == segments && elements == segments * whole && !elsewhere, [&] {
            return discrepancy(
                where, "gathers of checkpoints in a micro-step",
                fmt::format("{} all-gathers of {} elements, in backward", segments, whole),
                fmt::format("{} operations of {} elements{}", operations, elements,
                            elsewhere ? ", some of them of another kind or phase" : ""));
        });
    });
    return comparison.judgement("no micro-step");
}

// On the host, and nothing of them on the device once forward has ended.
Judgement on_host(const Context& context) {
    Comparison comparison;
    for_each_micro_step(context, [&](const MicroStepOf& where) {
        const std::size_t on_device = at(where.evidence.after_forward, Category::checkpoint) +
                                      at(where.evidence.after_forward, Category::buffer);
        comparison.check(on_device == 0, [&] {
            return discrepancy(where, "bytes of checkpoints on the device after forward", "0",
                               fmt::format("{}", on_device));
        });
    });
    return comparison.judgement("no micro-step");
}

// On its way while a block computes: forward to the host, backward from it.
Judgement overlap(const Context& context) {
    Comparison comparison;
    for (const Segment& segment : context.evidence.segments)
        for (std::size_t rank = 0; rank < segment.by_rank.size(); ++rank)
            for (const bool backward : {false, true}) {
                std::size_t moments = 0;
                for (const RankEvidence* member : group_of(segment, rank))
                    for (const InFlight& moment : member->in_flight)
                        moments += moment.backward == backward && moment.moves_checkpoint;
                comparison.check(moments > 0, [&] {
                    return Discrepancy{
                        .quantity = fmt::format("units that compute in {} while a checkpoint moves",
                                                backward ? "backward" : "forward"),
                        .expected = "at least one",
                        .seen = "none",
                        .rank = static_cast<int>(rank),
                        .diagnosis = "the copy is waited for where it starts: overlap is lost"};
                });
            }
    return comparison.judgement("no micro-step");
}

bool has_several_segments(const Case& c) {
    return offloads_checkpoints(c) && recomputed_segments(c).size() > 1;
}

// Buckets that the parameters of a unit can lie in, if no other parameter shares them.
std::size_t buckets_spanned(const Case& c, const std::vector<std::size_t>& parameters) {
    const std::size_t bucket = round_up(c.bucket_elements, static_cast<std::size_t>(c.ranks));
    std::size_t buckets = 0;
    for (const std::size_t p : parameters)
        buckets += (c.parameters[p].elements() + bucket - 1) / bucket + 1;
    return buckets;
}

// Fewer than a number that one unit and what is tied determine, however many units there are.
Judgement constant_buffers(const Context& context) {
    const Case& c = context.c;
    std::size_t of_unit = 0;
    for (const UnitCase& unit : c.units)
        of_unit = std::max(of_unit, buckets_spanned(c, unit.parameters));
    std::vector<std::size_t> tied;
    for (std::size_t p = 0; p < c.parameters.size(); ++p)
        if (uses_of(c, p) > 1) tied.push_back(p);
    const auto ranks = static_cast<std::size_t>(c.ranks);
    const std::size_t bucket =
        round_up(c.bucket_elements, ranks) * memory::size_of(weight_type(c.precision));
    const std::size_t moving = c.transformer->offload_checkpoints ? 2 * checkpoint_bytes(c) : 0;
    const std::size_t most =
        (of_unit + buckets_spanned(c, tied) + 1) * bucket + bucket / ranks + moving;
    Comparison comparison;
    for (const Segment& segment : context.evidence.segments)
        for (std::size_t rank = 0; rank < segment.by_rank.size(); ++rank)
            for (const Phase phase : {Phase::forward, Phase::backward, Phase::step}) {
                const std::size_t seen = at(
                    segment.by_rank[rank].peak_bytes_by_category[static_cast<std::size_t>(phase)],
                    Category::buffer);
                comparison.check(seen <= most, [&] {
                    return Discrepancy{
                        .quantity =
                            fmt::format("most bytes of buffers in {}", memory::name_of(phase)),
                        .expected = fmt::format("at most {}, whatever the number of units", most),
                        .seen = fmt::format("{}", seen),
                        .rank = static_cast<int>(rank),
                        .diagnosis = "buffers grow with the model"};
                });
            }
    return comparison.judgement();
}

// One piece of the device or host, taken before the first pass and kept.
Judgement contiguous(const Context& context) {
    Comparison comparison;
    for (const Segment& segment : context.evidence.segments)
        for (std::size_t rank = 0; rank < segment.by_rank.size(); ++rank)
            for (const RankEvidence* member : group_of(segment, rank)) {
                std::size_t taken = 0;
                std::size_t late = 0;
                for (const memory::AllocationEvent& event : member->allocations.events) {
                    if (event.kind != memory::AllocationEvent::Kind::allocate ||
                        event.category != Category::checkpoint)
                        continue;
                    ++taken;
                    late += event.phase != Phase::initialise;
                }
                const std::size_t expected = context.c.transformer->offload_checkpoints ? 0 : 1;
                comparison.check(taken == expected && late == 0, [&] {
                    return Discrepancy{
                        .quantity = "allocations of checkpoints on the device",
                        .expected = fmt::format("{}, before the first pass", expected),
                        .seen = fmt::format("{}, {} of them in a pass", taken, late),
                        .rank = static_cast<int>(rank),
                        .diagnosis = "long-lived pieces lie between short-lived ones"};
                });
            }
    return comparison.judgement();
}

bool is_contiguous(const Case& c) {
    return keeps_checkpoints(c) && c.transformer->contiguous_checkpoints;
}

constexpr std::string_view kNoMicroStep = "not exercised: no micro-step";

}  // namespace

std::vector<Clause> zero_r_clauses() {
    return {
        {"ZEROR.PA.PLACEMENT",
         "With Pa each rank of a tensor-parallel group keeps its N-th part of every checkpoint, in "
         "the order of the ranks, the last padded with zeros.",
         "arXiv 1910.02054, section 6.1",
         "FC45, PART",
         "not exercised: no checkpoint was taken",
         partitions_checkpoints,
         placement,
         {Observation::live_bytes}},
        {"ZEROR.PA.TRAFFIC",
         "Pa costs one all-gather of s b h elements for each checkpoint, before it is computed "
         "from, and nothing else.",
         "arXiv 1910.02054, section 8",
         "FC42, VOL",
         kNoMicroStep,
         partitions_checkpoints,
         gathers,
         {Observation::collectives}},
        {"ZEROR.CPU.PLACEMENT",
         "With Pa+cpu no byte of a checkpoint is on the device once forward has ended.",
         "arXiv 1910.02054, section 6.1",
         "FC45, MEM",
         kNoMicroStep,
         offloads_checkpoints,
         on_host,
         {Observation::live_bytes}},
        {"ZEROR.CPU.OVERLAP",
         "Checkpoints move to the host while later blocks compute, and back while earlier ones are "
         "still to come.",
         "arXiv 1910.02054, section 4.2.1",
         "FC44",
         kNoMicroStep,
         has_several_segments,
         overlap,
         {Observation::in_flight}},
        {"ZEROR.CB.CONSTANT",
         "Buffers are of a constant size: how many bytes they take depends on the bucket, on the "
         "largest unit and on what is tied, and not on how many units there are.",
         "arXiv 1910.02054, sections 4.2.2 and 6.2",
         "FC39, MEM",
         "",
         trains_transformer,
         constant_buffers,
         {Observation::peak_bytes}},
        {"ZEROR.MD.CONTIGUOUS",
         "With MD room for all checkpoints is taken in one piece before training, so that nothing "
         "that lives from forward to backward is allocated between what lives shorter.",
         "arXiv 1910.02054, sections 4.2.3 and 6.3",
         "FC39, MEM",
         "",
         is_contiguous,
         contiguous,
         {Observation::live_bytes}},
    };
}

}  // namespace zeroproof::suites
