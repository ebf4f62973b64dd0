// What Adam has made of the gradient.
#include <algorithm>

#include "suites/conformance/comparison.h"

namespace zeroproof::suites {

std::vector<Clause> optimizer_clauses();

namespace {

using Values = const std::vector<float>& (*)(const OwnedSlice&);
using Bounds = const std::vector<Bounded>& (*)(const ExpectedParameter&);

Judgement compare(const Context& context, const char* quantity, Values values, Bounds bounds) {
    Comparison comparison;
    for_each_owned_element(
        context, [](const Snapshot& s) { return s.kind == ActionKind::step && s.action >= 0; },
        [&](const OwnedElement& where) {
            if (where.expected.skipped) return;
            const double seen = double{values(where.slice)[where.index]};
            const Bounded expected =
                bounds(where.expected.parameters[where.slice.parameter])[where.element];
            comparison.check(matches(seen, expected), [&] {
                return at(context.c, where, quantity, full(expected), full(seen));
            });
        });
    return comparison.judgement("no step was taken, or nothing is trainable");
}

Judgement masters(const Context& context) {
    return compare(
        context, "master weight", master_of,
        [](const ExpectedParameter& p) -> const auto& { return p.master; });
}

bool has_decay(const Case& c) {
    return std::ranges::any_of(c.groups, [](const GroupCase& g) { return g.weight_decay != 0; });
}

Judgement step_count(const Context& context) {
    Comparison comparison;
    for_each_snapshot(
        context, [&](const Segment&, int rank, const Snapshot& snapshot, const Expected& expected) {
            if (snapshot.kind != ActionKind::step) return;
            comparison.check(snapshot.steps_taken == expected.steps_taken, [&] {
                return Discrepancy{.quantity = "steps taken, as bias correction counts them",
                                   .expected = fmt::format("{}", expected.steps_taken),
                                   .seen = fmt::format("{}", snapshot.steps_taken),
                                   .rank = rank,
                                   .action = snapshot.action,
                                   .step = step_number(context.c, snapshot.action)};
            });
        });
    return comparison.judgement();
}

constexpr std::string_view kAdam =
    "Kingma and Ba, algorithm 1; Loshchilov and Hutter, algorithm 2; docs/specification.md, Adam";
constexpr std::string_view kOtherwise = "not exercised: no step was taken";

}  // namespace

std::vector<Clause> optimizer_clauses() {
    return {
        {"MOMENT.FIRST",
         "After each step m is beta1 * m + (1 - beta1) * g, of the clipped gradient g.",
         kAdam,
         "FC18, FC21, FC24, FC25, AVG",
         kOtherwise,
         trains,
         [](const Context& context) {
             return compare(
                 context, "momentum (m)", momentum_of,
                 [](const ExpectedParameter& p) -> const auto& { return p.momentum; });
         },
         {Observation::momentum}},
        {"MOMENT.SECOND",
         "After each step v is beta2 * v + (1 - beta2) * g * g, of the clipped gradient g.",
         kAdam,
         "FC18, FC21, FC24, FC25, AVG",
         kOtherwise,
         trains,
         [](const Context& context) {
             return compare(
                 context, "variance (v)", variance_of,
                 [](const ExpectedParameter& p) -> const auto& { return p.variance; });
         },
         {Observation::variance}},
        {"MASTER.VALUE",
         "After each step the fp32 master is p - lr * m_hat / (sqrt(v_hat) + eps), m_hat and v_hat "
         "being bias-corrected.",
         kAdam,
         "FC11, FC22, FC23, FC24",
         kOtherwise,
         [](const Case& c) { return trains(c) && c.groups.size() == 1 && !has_decay(c); },
         masters,
         {Observation::master}},
        {"DECAY.FORM",
         "Weight decay is decoupled, p - lr * decay * p, or L2, g + decay * p, as the group says.",
         kAdam,
         "FC24",
         kOtherwise,
         [](const Case& c) { return trains(c) && c.groups.size() == 1 && has_decay(c); },
         masters,
         {Observation::master}},
        {"GROUP.OWN",
         "Each parameter is stepped with the learning rate, betas, epsilon and decay of its own "
         "group, in whatever order groups are interleaved and though one is empty.",
         "docs/specification.md, Groups",
         "FC25, OPT",
         kOtherwise,
         [](const Case& c) { return trains(c) && c.groups.size() > 1; },
         masters,
         {Observation::master}},
        {"STEP.COUNT",
         "The step counter counts steps that were taken, once each, from 1, on every rank alike.",
         kAdam,
         "FC23, FC20",
         "",
         trains,
         step_count,
         {Observation::steps}},
    };
}

}  // namespace zeroproof::suites
