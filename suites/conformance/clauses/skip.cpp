// Steps that a non-finite gradient forbids, and the loss scale.
#include <algorithm>

#include "suites/conformance/comparison.h"

namespace zeroproof::suites {

std::vector<Clause> skip_clauses();

namespace {

bool injects(const Case& c) {
    return trains(c) && !c.injections.empty();
}

Judgement decision(const Context& context) {
    Comparison comparison;
    for_each_step(context, [&](const Segment&, int rank, const Snapshot& snapshot,
                               const Expected& expected) {
        comparison.check(snapshot.skipped == expected.skipped, [&] {
            return Discrepancy{
                .quantity = "whether the step is skipped",
                .expected = expected.skipped ? "skipped" : "taken",
                .seen = snapshot.skipped ? "skipped" : "taken",
                .rank = rank,
                .action = snapshot.action,
                .step = step_number(context.c, snapshot.action),
                .diagnosis = expected.skipped ? "a non-finite gradient element went unnoticed here"
                                              : "every gradient element was finite"};
        });
    });
    return comparison.judgement();
}

Judgement agreement(const Context& context) {
    Comparison comparison;
    const auto tell = [](const Snapshot& snapshot) {
        return fmt::format("{}, {} skipped so far, loss scale {}",
                           snapshot.skipped ? "skipped" : "taken", snapshot.steps_skipped,
                           snapshot.loss_scale);
    };
    for_each_beside_rank_0(
        context, [&](const Segment&, int rank, const Snapshot& ours, const Snapshot& first) {
            comparison.check(tell(ours) == tell(first), [&] {
                return Discrepancy{.quantity = "decision, against rank 0",
                                   .expected = tell(first),
                                   .seen = tell(ours),
                                   .rank = rank,
                                   .action = ours.action,
                                   .step = step_number(context.c, ours.action)};
            });
        });
    return comparison.judgement("a single rank");
}

// What each rank owned and saw before a skipped step is what it owns and sees after.
Judgement atomic(const Context& context) {
    Comparison comparison;
    const Case& c = context.c;
    for_each_transition(context, [&](int rank, const Snapshot& before, const Snapshot& after) {
        const auto expected = std::ranges::find(context.expected, after.action, &Expected::action);
        if (expected == context.expected.end() || after.kind != ActionKind::step ||
            !expected->skipped)
            return;
        compare_states(c, rank, before, after, "after a skipped step", comparison);
        comparison.check(before.steps_taken == after.steps_taken, [&] {
            return Discrepancy{.quantity = "steps taken, after a skipped step",
                               .expected = fmt::format("{}", before.steps_taken),
                               .seen = fmt::format("{}", after.steps_taken),
                               .rank = rank,
                               .action = after.action,
                               .step = step_number(c, after.action)};
        });
    });
    return comparison.judgement("no step had to be skipped");
}

Judgement counts(const Context& context) {
    Comparison comparison;
    for_each_snapshot(
        context, [&](const Segment&, int rank, const Snapshot& snapshot, const Expected& expected) {
            comparison.check(snapshot.steps_skipped == expected.steps_skipped, [&] {
                return Discrepancy{.quantity = "steps skipped so far",
                                   .expected = fmt::format("{}", expected.steps_skipped),
                                   .seen = fmt::format("{}", snapshot.steps_skipped),
                                   .rank = rank,
                                   .action = snapshot.action,
                                   .step = step_number(context.c, snapshot.action)};
            });
        });
    return comparison.judgement();
}

Judgement scale(const Context& context) {
    Comparison comparison;
    for_each_snapshot(
        context, [&](const Segment&, int rank, const Snapshot& snapshot, const Expected& expected) {
            comparison.check(snapshot.loss_scale == expected.loss_scale, [&] {
                return Discrepancy{.quantity = "loss scale",
                                   .expected = full(expected.loss_scale),
                                   .seen = full(snapshot.loss_scale),
                                   .rank = rank,
                                   .action = snapshot.action,
                                   .step = step_number(context.c, snapshot.action)};
            });
        });
    return comparison.judgement();
}

constexpr std::string_view kSource = "docs/specification.md, Skip";

}  // namespace

std::vector<Clause> skip_clauses() {
    return {
        {"SKIP.DECISION",
         "A step is skipped if and only if an element of the gradient is infinite or NaN on any "
         "rank in any micro-step, in every precision.",
         kSource,
         "FC18, FC19, FC20, SCALE",
         "",
         injects,
         decision,
         {Observation::skips}},
        {"SKIP.AGREEMENT",
         "All ranks skip together and keep the same count and loss scale.",
         kSource,
         "FC19, SCALE",
         "not exercised: a single rank",
         [](const Case& c) { return injects(c) && c.has_several_ranks(); },
         agreement,
         {Observation::skips, Observation::loss_scale}},
        {"SKIP.ATOMIC",
         "A skipped step changes neither masters, moments and weights nor the step counter.",
         kSource,
         "FC20",
         "not exercised: no step had to be skipped",
         injects,
         atomic,
         {Observation::master, Observation::momentum, Observation::variance, Observation::steps}},
        {"SKIP.COUNT",
         "The count of skipped steps grows by one with each, and by nothing else.",
         kSource,
         "FC20, FC38",
         "",
         injects,
         counts,
         {Observation::skips}},
        {"SCALE.SEQUENCE",
         "The loss scale of fp16 grows after the interval of steps without overflow and backs off "
         "once the hysteresis is used up, never below its minimum; it is 1 in fp32 and bf16.",
         "Micikevicius et al., section 3.2; docs/specification.md, Loss scale",
         "FC20, SCALE",
         "",
         trains,
         scale,
         {Observation::loss_scale}},
    };
}

}  // namespace zeroproof::suites
