// The global gradient norm, and clipping by it.
#include <cmath>

#include "suites/conformance/comparison.h"

namespace zeroproof::suites {

std::vector<Clause> norm_clauses();

namespace {

std::size_t total_elements(const Case& c) {
    std::size_t total = 1;
    for (const ParameterCase& p : c.parameters) total += p.elements();
    return total;
}

// Summing n squares rounds n times, and so does the root once.
double norm_roundoff(const Context& context) {
    const double n = static_cast<double>(total_elements(context.c)) + 2;
    const bool wide = context.declaration.norm_accumulation == memory::DType::fp64;
    // Squares of exact gradients are integers times 2^-12 far below 2^53: no rounding in fp64 but
    // the root's, which both sides take of the same number.
    if (wide && context.c.gradients == GradientKind::exact) return 0;
    return n * (wide ? 0x1p-53 : 0x1p-24);
}

Judgement value(const Context& context) {
    Comparison comparison;
    for_each_step(
        context, [&](const Segment&, int rank, const Snapshot& snapshot, const Expected& expected) {
            if (expected.skipped || snapshot.skipped) return;
            Bounded bound = expected.norm;
            bound.error += norm_roundoff(context) * bound.value;
            comparison.check(matches(snapshot.norm, bound), [&] {
                const double ratio = snapshot.norm * snapshot.norm / (bound.value * bound.value);
                return Discrepancy{.quantity = "global gradient norm, before clipping",
                                   .expected = full(bound),
                                   .seen = full(snapshot.norm),
                                   .rank = rank,
                                   .action = snapshot.action,
                                   .step = step_number(context.c, snapshot.action),
                                   .diagnosis = fmt::format(
                                       "its square is {:.17g} times what it should be", ratio)};
            });
        });
    return comparison.judgement("every step was skipped");
}

// A norm may be NaN, on all ranks alike, where a gradient is.
bool same(double a, double b) {
    return a == b || (std::isnan(a) && std::isnan(b));
}

Judgement agreement(const Context& context) {
    Comparison comparison;
    for_each_beside_rank_0(
        context, [&](const Segment&, int rank, const Snapshot& ours, const Snapshot& first) {
            if (ours.kind != ActionKind::step || ours.action < 0) return;
            comparison.check(
                same(ours.norm, first.norm) && same(ours.clip_coefficient, first.clip_coefficient),
                [&] {
                    return Discrepancy{.quantity = "global gradient norm, against rank 0",
                                       .expected = full(first.norm),
                                       .seen = full(ours.norm),
                                       .rank = rank,
                                       .action = ours.action,
                                       .step = step_number(context.c, ours.action),
                                       .diagnosis = "each rank clips by a norm of its own"};
                });
        });
    return comparison.judgement("a single rank");
}

Judgement coefficient(const Context& context) {
    Comparison comparison;
    for_each_step(context, [&](const Segment&, int rank, const Snapshot& snapshot,
                               const Expected& expected) {
        if (expected.skipped || snapshot.skipped) return;
        Bounded bound = expected.clip_coefficient;
        if (bound.value != 1) bound.error += norm_roundoff(context) * bound.value;
        comparison.check(matches(snapshot.clip_coefficient, bound), [&] {
            return Discrepancy{.quantity = fmt::format("clipping coefficient, min(1, {} / norm)",
                                                       context.c.clip_norm),
                               .expected = full(bound),
                               .seen = full(snapshot.clip_coefficient),
                               .rank = rank,
                               .action = snapshot.action,
                               .step = step_number(context.c, snapshot.action)};
        });
    });
    return comparison.judgement("every step was skipped");
}

constexpr std::string_view kSource = "docs/specification.md, Norm";

// Where weights are cut over a tensor-parallel group, the norm is of more than the case's
// parameters: TENSOR.NORM.
bool has_norm_of_its_own(const Case& c) {
    return trains(c) && !is_cut(c);
}

}  // namespace

std::vector<Clause> norm_clauses() {
    return {
        {"NORM.VALUE",
         "The norm is taken over every element of every trainable parameter's averaged, unscaled "
         "gradient, each once: tied ones once, replicas once, padding never.",
         kSource,
         "FC05, FC12, FC16, FC18, NORM",
         "not exercised: every step was skipped",
         has_norm_of_its_own,
         value,
         {Observation::norm}},
        {"NORM.AGREEMENT",
         "Every rank reports and uses the same bits of the norm.",
         kSource,
         "FC16, NORM",
         "not exercised: a single rank",
         [](const Case& c) { return has_norm_of_its_own(c) && c.has_several_ranks(); },
         agreement,
         {Observation::norm}},
        {"CLIP.COEFFICIENT",
         "Clipping multiplies the gradient by min(1, bound / norm), in every precision, and leaves "
         "a gradient within the bound alone.",
         kSource,
         "FC18",
         "not exercised: every step was skipped",
         [](const Case& c) { return has_norm_of_its_own(c) && c.clip_norm > 0; },
         coefficient,
         {Observation::clip_coefficient}},
    };
}

}  // namespace zeroproof::suites
