// Races, in surroundings that make them certain.
#include "suites/conformance/comparison.h"

namespace zeroproof::suites {

std::vector<Clause> race_clauses();

namespace {

bool is_hostile(const Case& c) {
    return trains(c) && c.surroundings == Surroundings::hostile;
}

Judgement races(const Context& context, collectives::RaceKind kind, const char* diagnosis) {
    Comparison comparison;
    for (const Segment& segment : context.evidence.segments)
        for (std::size_t rank = 0; rank < segment.by_rank.size(); ++rank) {
            if (!segment.by_rank[rank].races_watched)
                return {Verdict::not_observable, "nobody watched the buffers", {}, 0};
            for (std::size_t i = 0; i < segment.by_rank[rank].collectives.size(); ++i)
                comparison.check(true, [] { return Discrepancy{}; });
            for (const collectives::Race& race : segment.by_rank[rank].races) {
                if (race.kind != kind) continue;
                comparison.check(false, [&] {
                    return Discrepancy{.quantity = fmt::format("{}, number {} of its group",
                                                               race.operation, race.number),
                                       .expected = "left alone from start to wait",
                                       .seen = std::string(collectives::name_of(race.kind)),
                                       .rank = static_cast<int>(rank),
                                       .element = static_cast<long long>(race.element),
                                       .diagnosis = diagnosis};
                });
            }
        }
    return comparison.judgement("nothing was sent");
}

constexpr std::string_view kSource = "docs/specification.md, Overlap";
constexpr std::string_view kOtherwise =
    "not exercised: nothing was sent; not observable: nobody watched the buffers";

}  // namespace

std::vector<Clause> race_clauses() {
    return {
        {"RACE.INPUT",
         "From start to wait the input of an operation is neither written nor freed.",
         kSource,
         "FC14, FC08, RACE",
         kOtherwise,
         is_hostile,
         [](const Context& context) {
             return races(context, collectives::RaceKind::input_touched,
                          "a buffer was reused or freed while a collective read it");
         },
         {Observation::races}},
        {"RACE.OUTPUT",
         "From start to wait the output of an operation is not written.",
         kSource,
         "FC14, RACE",
         kOtherwise,
         is_hostile,
         [](const Context& context) {
             return races(context, collectives::RaceKind::output_touched,
                          "a buffer was written while a collective delivered into it");
         },
         {Observation::races}},
        {"RACE.AWAITED",
         "Every operation is waited for.",
         kSource,
         "FC13, FC15, RACE",
         kOtherwise,
         is_hostile,
         [](const Context& context) {
             return races(context, collectives::RaceKind::not_awaited,
                          "the result was never known to be there");
         },
         {Observation::races}},
    };
}

}  // namespace zeroproof::suites
