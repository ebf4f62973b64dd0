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

// Compares the most operations that were in flight at any moment, on each rank, with none or with
// at least one. A part of the run without such moments shows nothing.
Judgement in_flight(const Context& context, bool wanted, const char* quantity,
                    const char* diagnosis,
                    std::optional<std::size_t> (*count)(const Segment&, const InFlight&)) {
    Comparison comparison;
    for (const Segment& segment : context.evidence.segments)
        for (std::size_t rank = 0; rank < segment.by_rank.size(); ++rank) {
            std::optional<std::size_t> most;
            for (const InFlight& moment : segment.by_rank[rank].in_flight)
                most =
                    std::max(most, count(segment, moment));  // an empty one is less than any number
            if (!most) continue;
            comparison.check(wanted == (*most > 0), [&] {
                return Discrepancy{.quantity = quantity,
                                   .expected = wanted ? "at least 1 at some time" : "none",
                                   .seen = fmt::format("{} at most", *most),
                                   .rank = static_cast<int>(rank),
                                   .diagnosis = diagnosis};
            });
        }
    return comparison.judgement("no unit computed");
}

Judgement backward(const Context& context) {
    return in_flight(context, context.c.overlap,
                     "gradient reductions in flight while a unit's backward computes",
                     context.c.overlap ? "overlap is on, and nothing overlaps"
                                       : "overlap is off, and something overlaps",
                     [](const Segment&, const InFlight& moment) -> std::optional<std::size_t> {
                         if (!moment.backward) return {};
                         return moment.gradient;
                     });
}

Judgement prefetch(const Context& context) {
    return in_flight(
        context, context.c.prefetch, "weight gathers in flight while a unit computes",
        context.c.prefetch ? "prefetch is on, and nothing is gathered ahead"
                           : "prefetch is off, and something is gathered ahead",
        [](const Segment& segment, const InFlight& moment) -> std::optional<std::size_t> {
            if (segment.stage != 3) return {};
            return moment.parameter;
        });
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
