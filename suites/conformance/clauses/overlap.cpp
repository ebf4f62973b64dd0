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
    const std::size_t bucket =
        c.bucket_elements + static_cast<std::size_t>(std::max(c.ranks, c.resume_ranks));
    for (const UnitCase& unit : c.units) {
        std::size_t elements = 0;
        for (const std::size_t p : unit.parameters)
            if (c.parameters[p].trainable && uses_of(c, p) == 1)
                elements += c.parameters[p].elements();
        if (elements < 2 * bucket) return false;
    }
    return true;
}

// Whether some unit needs weights that the one before it in the order of a pass does not hold.
bool has_more_to_gather(const Case& c, bool is_backward) {
    for (std::size_t u = 1; u < c.units.size(); ++u) {
        const auto& next = c.units[is_backward ? u - 1 : u].parameters;
        const auto& present = c.units[is_backward ? u : u - 1].parameters;
        for (const std::size_t p : next)
            if (c.parameters[p].elements() > 0 && std::ranges::count(present, p) == 0) return true;
    }
    return false;
}

// Stage 3, and in either pass something to gather ahead.
bool can_prefetch(const Case& c) {
    return trains(c) && c.stage == 3 && has_more_to_gather(c, false) && has_more_to_gather(c, true);
}

// Whether a micro-step reduces gradients: in stages 0 and 1 only the last one of a window does.
bool reduces(const Case& c, const Segment& segment, int action) {
    int micro_steps = 0;
    for (int a = 0; a <= action && a < static_cast<int>(c.program.size()); ++a) {
        const ActionKind kind = c.program[static_cast<std::size_t>(a)].kind;
        if (kind == ActionKind::micro_step) ++micro_steps;
        if (kind == ActionKind::step || kind == ActionKind::zero_grad) micro_steps = 0;
    }
    return segment.stage >= 2 || micro_steps == c.micro_steps;
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
                // Where nothing is reduced there is nothing to overlap.
                if (moment.backward == is_backward && (!wanted || count != &InFlight::gradient ||
                                                       reduces(context.c, segment, moment.action)))
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
         kSource,
         "FC44",
         "not exercised: no unit computed",
         can_overlap,
         backward,
         {Observation::in_flight}},
        {"OVERLAP.PREFETCH",
         "With prefetch, stage 3 gathers the next unit while the present one computes; without, it "
         "does not.",
         kSource,
         "FC44",
         "not exercised: no unit computed",
         can_prefetch,
         prefetch,
         {Observation::in_flight}},
    };
}

}  // namespace zeroproof::suites
