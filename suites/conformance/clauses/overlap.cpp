// Whether communication goes on while units compute, where that is asked for.
#include <algorithm>
#include <optional>

#include "suites/conformance/comparison.h"

namespace zeroproof::suites {

std::vector<Clause> overlap_clauses();

namespace {

// Several units, and at least two buckets for each: the buckets of one unit travel while another's
// backward computes.
bool can_overlap(const Case& c) {
    if (!trains(c) || c.units.size() < 2) return false;
    const std::size_t bucket = c.bucket_elements + static_cast<std::size_t>(c.ranks);
    for (const UnitCase& unit : c.units) {
        std::size_t elements = 0;
        for (const std::size_t p : unit.parameters)
            if (c.parameters[p].trainable && uses_of(c, p) == 1)
                elements += c.parameters[p].elements();
        if (elements < 2 * bucket) return false;
    }
    return true;
}

// Stage 3, and a unit that needs weights which the unit before it does not hold.
bool can_prefetch(const Case& c) {
    if (!trains(c) || c.stage != 3) return false;
    for (std::size_t u = 1; u < c.units.size(); ++u)
        for (const std::size_t p : c.units[u].parameters)
            if (c.parameters[p].elements() > 0 &&
                std::ranges::count(c.units[u - 1].parameters, p) == 0)
                return true;
    return false;
}

// Compares the most operations that were in flight at any moment of one pass, on each rank, with
// none or with at least one. A part of the run without such moments shows nothing.
void compare_most(const Context& context, bool is_backward, bool wanted, const char* quantity,
                  const char* diagnosis, std::size_t InFlight::*count, bool stage_3_only,
                  Comparison& comparison) {
    for (const Segment& segment : context.evidence.segments) {
        if (stage_3_only && segment.stage != 3) continue;
        for (std::size_t rank = 0; rank < segment.by_rank.size(); ++rank) {
            std::optional<std::size_t> most;
            for (const InFlight& moment : segment.by_rank[rank].in_flight)
                if (moment.backward == is_backward)
                    most = std::max(most.value_or(0), moment.*count);
            if (!most) continue;
            comparison.check(wanted == (*most > 0), [&] {
                return Discrepancy{
                    .quantity = fmt::format("{} in flight while a unit's {} computes", quantity,
                                            is_backward ? "backward" : "forward"),
                    .expected = wanted ? "at least 1 at some time" : "none",
                    .seen = fmt::format("{} at most", *most),
                    .rank = static_cast<int>(rank),
                    .diagnosis = diagnosis};
            });
        }
    }
}

Judgement backward(const Context& context) {
    Comparison comparison;
    compare_most(context, true, context.c.overlap, "gradient reductions",
                 context.c.overlap ? "overlap is on, and nothing overlaps"
                                   : "overlap is off, and something overlaps",
                 &InFlight::gradient, false, comparison);
    return comparison.judgement("no unit computed");
}

Judgement prefetch(const Context& context) {
    Comparison comparison;
    for (const bool is_backward : {false, true})
        compare_most(context, is_backward, context.c.prefetch, "weight gathers",
                     context.c.prefetch ? "prefetch is on, and nothing is gathered ahead"
                                        : "prefetch is off, and something is gathered ahead",
                     &InFlight::parameter, true, comparison);
    return comparison.judgement("no unit computed");
}

constexpr std::string_view kSource = "docs/specification.md, Overlap";

}  // namespace

std::vector<Clause> overlap_clauses() {
    return {
        {"OVERLAP.BACKWARD",
         "With overlap, reductions of full buckets travel while backward computes; without, none "
         "does.",
         kSource, "FC44", "not exercised: no unit computed", can_overlap, backward},
        {"OVERLAP.PREFETCH",
         "With prefetch, stage 3 gathers the next unit while the present one computes; without, it "
         "does not.",
         kSource, "FC44", "not exercised: no unit computed", can_prefetch, prefetch},
    };
}

}  // namespace zeroproof::suites
