// Whether communication goes on while units compute, where that is asked for.
#include "suites/conformance/comparison.h"
#include "suites/conformance/partition_model.h"

namespace zeroproof::suites {

std::vector<Clause> overlap_clauses();

namespace {

// Buckets that a backward pass can complete before its last unit: there must be one to overlap.
bool can_overlap(const Context& context) {
    const auto sets = partitioned_sets(context.c, context.declaration, context.c.stage,
                                       context.c.ranks);
    std::size_t buckets = 0;
    for (const PartitionedSet& set : sets)
        if (set.trainable) buckets += set.buckets;
    return buckets >= 2 * context.c.units.size() && context.c.units.size() >= 2;
}

Judgement backward(const Context& context) {
    if (!can_overlap(context))
        return {Verdict::not_exercised, "too few buckets to be sure that one travels", {}, 0};
    Comparison comparison;
    const Segment& segment = context.evidence.segments.front();
    for (std::size_t rank = 0; rank < segment.by_rank.size(); ++rank) {
        std::size_t most = 0;
        for (const InFlight& moment : segment.by_rank[rank].in_flight)
            if (moment.backward) most = std::max(most, moment.gradient);
        comparison.check(context.c.overlap ? most > 0 : most == 0, [&] {
            return Discrepancy{
                .quantity = "gradient reductions in flight while a unit's backward computes",
                .expected = context.c.overlap ? "at least 1 at some time" : "none",
                .seen = fmt::format("{} at most", most),
                .rank = static_cast<int>(rank),
                .diagnosis = context.c.overlap ? "overlap is on, and nothing overlaps"
                                               : "overlap is off, and something overlaps"};
        });
    }
    return comparison.judgement();
}

Judgement prefetch(const Context& context) {
    Comparison comparison;
    const Segment& segment = context.evidence.segments.front();
    for (std::size_t rank = 0; rank < segment.by_rank.size(); ++rank) {
        std::size_t most = 0;
        for (const InFlight& moment : segment.by_rank[rank].in_flight)
            most = std::max(most, moment.parameter);
        comparison.check(context.c.prefetch ? most > 0 : most == 0, [&] {
            return Discrepancy{.quantity = "weight gathers in flight while a unit computes",
                               .expected = context.c.prefetch ? "at least 1 at some time" : "none",
                               .seen = fmt::format("{} at most", most),
                               .rank = static_cast<int>(rank),
                               .diagnosis = "prefetch does not do what it is asked for"};
        });
    }
    return comparison.judgement();
}

constexpr std::string_view kSource = "docs/specification.md, Overlap";

}  // namespace

std::vector<Clause> overlap_clauses() {
    return {
        {"OVERLAP.BACKWARD",
         "With overlap, reductions of full buckets travel while backward computes; without, none "
         "does.",
         kSource, "FC44", "not exercised: too few buckets",
         [](const Case& c) { return trains(c); }, backward},
        {"OVERLAP.PREFETCH",
         "With prefetch, stage 3 gathers the next unit while the present one computes; without, it "
         "does not.",
         kSource, "FC44", "", [](const Case& c) {
             return trains(c) && c.stage == 3 && c.units.size() >= 2 && c.family == "overlap";
         },
         prefetch},
    };
}

}  // namespace zeroproof::suites
