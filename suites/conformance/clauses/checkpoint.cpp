// Saving, and going on from what was saved, also on another number of ranks and in another stage.
#include <cmath>
#include <limits>

#include "suites/conformance/comparison.h"

namespace zeroproof::suites {

std::vector<Clause> checkpoint_clauses();

namespace {

bool reloads(const Case& c) {
    return trains(c) && c.has_reload();
}

using Values = const std::vector<float>& (*)(const OwnedSlice&);

// Every element as its owners left it in the last snapshot of the first segment.
std::vector<std::vector<float>> saved(const Context& context, Values values) {
    std::vector<std::vector<float>> all;
    for (const ParameterCase& parameter : context.c.parameters)
        all.emplace_back(parameter.elements(), std::numeric_limits<float>::quiet_NaN());
    for (const RankEvidence& rank : context.evidence.segments.front().by_rank)
        for (const OwnedSlice& slice : rank.snapshots.back().owned)
            for (std::size_t i = 0;
                 i < values(slice).size() && slice.begin + i < all[slice.parameter].size(); ++i)
                all[slice.parameter][slice.begin + i] = values(slice)[i];
    return all;
}

bool loaded(const Snapshot& snapshot) {
    return snapshot.kind == ActionKind::reload;
}

Judgement state(const Context& context) {
    Comparison comparison;
    const struct {
        const char* quantity;
        Values values;
    } parts[] = {{"master", master_of}, {"momentum", momentum_of}, {"variance", variance_of}};
    for (const auto& [quantity, values] : parts) {
        const auto expected = saved(context, values);
        for_each_owned_element(
            context, loaded, [&, q = quantity, v = values](const OwnedElement& where) {
                const float seen = v(where.slice)[where.index];
                const float wanted = expected[where.slice.parameter][where.element];
                comparison.check(same_bits(seen, wanted), [&] {
                    return at(context.c, where, fmt::format("{} after loading", q),
                              full(double{wanted}), full(double{seen}));
                });
            });
    }
    return comparison.judgement("nothing was loaded");
}

Judgement scalars(const Context& context) {
    Comparison comparison;
    for_each_snapshot(
        context, [&](const Segment&, int rank, const Snapshot& snapshot, const Expected& expected) {
            if (!loaded(snapshot)) return;
            const auto check = [&](const char* quantity, double wanted, double seen) {
                comparison.check(wanted == seen, [&] {
                    return Discrepancy{.quantity = fmt::format("{} after loading", quantity),
                                       .expected = full(wanted),
                                       .seen = full(seen),
                                       .rank = rank,
                                       .action = snapshot.action,
                                       .diagnosis = "a scalar was not saved, or not restored"};
                });
            };
            check("steps taken", static_cast<double>(expected.steps_taken),
                  static_cast<double>(snapshot.steps_taken));
            check("steps skipped", static_cast<double>(expected.steps_skipped),
                  static_cast<double>(snapshot.steps_skipped));
            check("loss scale", expected.loss_scale, snapshot.loss_scale);
        });
    return comparison.judgement("nothing was loaded");
}

Judgement continues(const Context& context) {
    Comparison comparison;
    for_each_owned_element(
        context,
        [&](const Snapshot& s) {
            return s.kind == ActionKind::step && after_reload(context.c, s.action);
        },
        [&](const OwnedElement& where) {
            const auto& expected = where.expected.parameters[where.slice.parameter];
            const double seen = double{where.slice.master[where.index]};
            comparison.check(matches(seen, expected.master[where.element]), [&] {
                return at(context.c, where, "master, some steps after loading",
                          full(expected.master[where.element]), full(seen));
            });
        });
    for_each_step(
        context, [&](const Segment&, int rank, const Snapshot& snapshot, const Expected& expected) {
            if (!after_reload(context.c, snapshot.action)) return;
            comparison.check(snapshot.loss_scale == expected.loss_scale, [&] {
                return Discrepancy{.quantity = "loss scale, some steps after loading",
                                   .expected = full(expected.loss_scale),
                                   .seen = full(snapshot.loss_scale),
                                   .rank = rank,
                                   .action = snapshot.action,
                                   .diagnosis = "a counter of the loss scale was not restored"};
            });
        });
    return comparison.judgement("no step after the load");
}

constexpr std::string_view kSource = "docs/specification.md, Save and load";

}  // namespace

std::vector<Clause> checkpoint_clauses() {
    return {
        {"CHECKPOINT.STATE",
         "After loading, at any number of ranks and any stage, every element's master, momentum "
         "and variance have the bits that were saved.",
         kSource,
         "FC36, FC37, SAVE",
         "not exercised: nothing was loaded",
         reloads,
         state,
         {Observation::master, Observation::momentum, Observation::variance}},
        {"CHECKPOINT.SCALARS",
         "Steps taken and skipped, and the loss scale, are those that were saved.",
         kSource,
         "FC23, FC38, SAVE",
         "not exercised: nothing was loaded",
         reloads,
         scalars,
         {Observation::steps, Observation::skips, Observation::loss_scale}},
        {"CHECKPOINT.CONTINUE",
         "The steps after loading equal those of the run that never stopped, the loss scale's "
         "counters included.",
         kSource,
         "FC22, FC23, FC36, FC38, SAVE",
         "not exercised: no step after the load",
         reloads,
         continues,
         {Observation::master, Observation::loss_scale}},
    };
}

}  // namespace zeroproof::suites
