// What forward keeps for backward, and what is computed again.
#include <algorithm>

#include "suites/conformance/activations.h"
#include "suites/conformance/comparison.h"
#include "suites/conformance/transformer_plan.h"

namespace zeroproof::suites {

std::vector<Clause> activation_clauses();

namespace {

using memory::Category;

// Tokens and targets; of the head the input, what its normalization gives and two numbers a token;
// of each block that is not computed again, the formula of block_activation_bytes.
std::size_t kept_bytes(const Case& c) {
    const TransformerCase& t = *c.transformer;
    const std::size_t tokens = t.samples * t.model.sequence;
    const std::size_t width = memory::size_of(weight_type(c.precision));
    const std::size_t batch = 2 * tokens * sizeof(std::int32_t);
    const std::size_t head = 2 * width * t.stream_elements() + 2 * tokens * sizeof(float);
    const std::size_t blocks = t.blocks_per_checkpoint > 0 ? 0 : t.model.layers;
    return batch + head +
           blocks * scenarios::block_activation_bytes(t.model, training_plan(c).activations);
}

Judgement kept(const Context& context) {
    Comparison comparison;
    for_each_micro_step(context, [&](const MicroStepOf& where) {
        const std::size_t expected = kept_bytes(context.c);
        const std::size_t seen = at(where.evidence.after_forward, Category::activation);
        comparison.check(seen == expected, [&] {
            return discrepancy(where, "bytes of activations between forward and backward",
                               fmt::format("{}", expected), fmt::format("{}", seen));
        });
    });
    return comparison.judgement("no micro-step");
}

Judgement freed(const Context& context) {
    Comparison comparison;
    const TransformerCase& t = *context.c.transformer;
    const bool arena = t.contiguous_checkpoints && !t.offload_checkpoints;
    for_each_micro_step(context, [&](const MicroStepOf& where) {
        for (const Category category :
             {Category::activation, Category::checkpoint, Category::buffer}) {
            const std::size_t expected =
                arena && category == Category::checkpoint
                    ? recomputed_segments(context.c).size() * checkpoint_bytes(context.c)
                    : 0;
            const std::size_t seen = at(where.evidence.after_backward, category);
            comparison.check(seen == expected, [&] {
                return discrepancy(
                    where, fmt::format("bytes of {} after backward", memory::name_of(category)),
                    fmt::format("{}", expected), fmt::format("{}", seen));
            });
        }
    });
    return comparison.judgement("no micro-step");
}

Judgement restored(const Context& context) {
    Comparison comparison;
    for_each_checkpoint(context, [&](const MicroStepOf& where, std::size_t segment,
                                     const CheckpointEvidence& checkpoint) {
        comparison.check(
            checkpoint.restored.size() == checkpoint.stored.size() && !checkpoint.stored.empty(),
            [&] {
                return discrepancy(where,
                                   fmt::format("elements that checkpoint {} gave back", segment),
                                   fmt::format("{}", checkpoint.stored.size()),
                                   fmt::format("{}", checkpoint.restored.size()));
            });
        const std::size_t both = std::min(checkpoint.restored.size(), checkpoint.stored.size());
        for (std::size_t e = 0; e < both; ++e)
            comparison.check(same_bits(checkpoint.restored[e], checkpoint.stored[e]), [&] {
                Discrepancy d = discrepancy(
                    where, fmt::format("activation of checkpoint {} in backward", segment),
                    full(double{checkpoint.stored[e]}), full(double{checkpoint.restored[e]}));
                d.element = static_cast<long long>(e);
                return d;
            });
    });
    return comparison.judgement("no checkpoint was taken");
}

Judgement bytes_of_checkpoints(const Context& context) {
    Comparison comparison;
    const std::size_t expected =
        recomputed_segments(context.c).size() * checkpoint_bytes(context.c);
    for_each_micro_step(context, [&](const MicroStepOf& where) {
        const std::size_t seen = at(where.evidence.after_forward, Category::checkpoint) +
                                 at(where.evidence.host_after_forward, Category::checkpoint);
        comparison.check(seen == expected, [&] {
            return discrepancy(where, "bytes of checkpoints between forward and backward",
                               fmt::format("{}", expected), fmt::format("{}", seen));
        });
    });
    return comparison.judgement("no micro-step");
}

constexpr std::string_view kSource =
    "arXiv 2205.05198, section 4; docs/specification.md, Activations";
constexpr std::string_view kOtherwise = "not exercised: no micro-step";

}  // namespace

std::vector<Clause> activation_clauses() {
    return {
        {"ACTIVATION.KEPT",
         "Between forward and backward a rank keeps the activations of the formula: of each block "
         "that is not computed again, of the head, and the tokens.",
         kSource,
         "FC39, MEM, RECOMP",
         kOtherwise,
         trains_transformer,
         kept,
         {Observation::live_bytes}},
        {"ACTIVATION.FREED",
         "After backward no activation, no checkpoint and no buffer is live, but for the room that "
         "is taken once for all checkpoints.",
         kSource,
         "FC39, FC45, MEM",
         kOtherwise,
         trains_transformer,
         freed,
         {Observation::live_bytes}},
        {"RECOMPUTE.RESTORED",
         "What backward computes again starts from the bits that forward kept.",
         "arXiv 1910.02054, section 6.1",
         "FC45, RECOMP",
         "not exercised: no checkpoint was taken",
         keeps_checkpoints,
         restored,
         {Observation::live_bytes}},
        {"RECOMPUTE.BYTES",
         "A checkpoint takes the elements of the stream, s b h, or with Pa their N-th part, in the "
         "type of the weights, wherever it lies.",
         "arXiv 1910.02054, sections 3.2 and 6.1",
         "FC45, MEM, RECOMP",
         kOtherwise,
         keeps_checkpoints,
         bytes_of_checkpoints,
         {Observation::live_bytes}},
    };
}

}  // namespace zeroproof::suites
