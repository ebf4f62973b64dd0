// What a trainer may do between the actions of a plain training loop.
#include <algorithm>

#include "suites/conformance/comparison.h"

namespace zeroproof::suites {

std::vector<Clause> program_clauses();

namespace {

using Values = const std::vector<float>& (*)(const OwnedSlice&);
using Bounds = const std::vector<Bounded>& (*)(const ExpectedParameter&);

const std::vector<Bounded>& expected_master(const ExpectedParameter& p) {
    return p.master;
}
const std::vector<Bounded>& expected_momentum(const ExpectedParameter& p) {
    return p.momentum;
}

bool is_step(const Snapshot& s) {
    return s.kind == ActionKind::step && s.action >= 0;
}

// Compares one value of every owned element after each snapshot that `wanted` takes.
void compare(const Context& context, const std::function<bool(const Snapshot&)>& wanted,
             const char* quantity, Values values, Bounds bounds, Comparison& comparison) {
    for_each_owned_element(context, wanted, [&](const OwnedElement& where) {
        const double seen = double{values(where.slice)[where.index]};
        const Bounded expected =
            bounds(where.expected.parameters[where.slice.parameter])[where.element];
        comparison.check(matches(seen, expected), [&] {
            return at(context.c, where, quantity, full(expected), full(seen));
        });
    });
}

Judgement rate(const Context& context) {
    Comparison comparison;
    compare(context, is_step, "master weight, some steps after a change of the rate", master_of,
            expected_master, comparison);
    return comparison.judgement("no step was taken");
}

Judgement edited_gradient(const Context& context) {
    Comparison comparison;
    compare(context, is_step, "momentum (m), of an edited gradient", momentum_of, expected_momentum,
            comparison);
    return comparison.judgement("no step was taken");
}

Judgement edited_weight(const Context& context) {
    Comparison comparison;
    compare(
        context, [](const Snapshot& s) { return s.kind == ActionKind::scale_weight || is_step(s); },
        "master weight, after it was multiplied", master_of, expected_master, comparison);
    return comparison.judgement("no weight was multiplied");
}

// What the snapshot after a save held is what that after the load holds.
Judgement load(const Context& context) {
    const Case& c = context.c;
    Comparison comparison;
    for (const Segment& segment : context.evidence.segments)
        for (std::size_t rank = 0; rank < segment.by_rank.size(); ++rank) {
            const Snapshot* saved = nullptr;
            for (const Snapshot& snapshot : segment.by_rank[rank].snapshots) {
                if (snapshot.kind == ActionKind::save) saved = &snapshot;
                if (snapshot.kind != ActionKind::load || saved == nullptr) continue;
                compare_states(c, static_cast<int>(rank), *saved, snapshot,
                               "after going back to what was saved", comparison);
                comparison.check(saved->steps_taken == snapshot.steps_taken &&
                                     saved->loss_scale == snapshot.loss_scale,
                                 [&] {
                                     const auto tell = [](const Snapshot& s) {
                                         return fmt::format("{} steps, loss scale {}",
                                                            s.steps_taken, s.loss_scale);
                                     };
                                     return Discrepancy{
                                         .quantity = "scalars after going back to what was saved",
                                         .expected = tell(*saved),
                                         .seen = tell(snapshot),
                                         .rank = static_cast<int>(rank),
                                         .action = snapshot.action};
                                 });
            }
        }
    return comparison.judgement("nothing was loaded");
}

// Actions that are steps of an empty window.
std::vector<int> empty_steps(const Case& c) {
    std::vector<int> steps;
    bool is_empty = true;
    for (std::size_t a = 0; a < c.program.size(); ++a) {
        const ActionKind kind = c.program[a].kind;
        if (kind == ActionKind::step && is_empty) steps.push_back(static_cast<int>(a));
        if (kind == ActionKind::micro_step) is_empty = false;
        if (kind == ActionKind::step || kind == ActionKind::zero_grad) is_empty = true;
    }
    return steps;
}

Judgement empty_step(const Context& context) {
    const std::vector<int> steps = empty_steps(context.c);
    const auto is_wanted = [&](const Snapshot& s) {
        return is_step(s) && std::ranges::count(steps, s.action) > 0;
    };
    Comparison comparison;
    compare(context, is_wanted, "master weight, after a step without gradients", master_of,
            expected_master, comparison);
    compare(context, is_wanted, "momentum (m), after a step without gradients", momentum_of,
            expected_momentum, comparison);
    return comparison.judgement("no step without gradients was taken");
}

constexpr std::string_view kSource = "docs/specification.md, Programs";
constexpr std::string_view kNoStep = "not exercised: no step was taken";

}  // namespace

std::vector<Clause> program_clauses() {
    return {
        {"RATE.CHANGE",
         "From the next step on a group is stepped with the learning rate that it was given last.",
         kSource,
         "FC25",
         kNoStep,
         [](const Case& c) { return trains(c) && c.has(ActionKind::rate); },
         rate,
         {Observation::master}},
        {"EDIT.GRADIENT",
         "What a trainer makes of the reduced gradient before the step, by clipping or by scaling "
         "one parameter's, is what the optimizer sees.",
         kSource,
         "FC18, FC41",
         kNoStep,
         [](const Case& c) {
             return trains(c) && (c.has(ActionKind::clip) || c.has(ActionKind::scale_gradient));
         },
         edited_gradient,
         {Observation::momentum}},
        {"EDIT.WEIGHT",
         "A weight that a trainer changes between two windows is changed in the master too, on "
         "every rank, and stays so.",
         kSource,
         "FC22, FC41",
         "not exercised: no weight was multiplied",
         [](const Case& c) { return trains(c) && c.has(ActionKind::scale_weight); },
         edited_weight,
         {Observation::master}},
        {"CHECKPOINT.RETURN",
         "Loading in the same process brings back every master, moment, weight and scalar as they "
         "were when they were saved.",
         kSource,
         "FC22, FC36, FC38, SAVE",
         "not exercised: nothing was loaded",
         [](const Case& c) { return trains(c) && c.has(ActionKind::load); },
         load,
         {Observation::master, Observation::momentum, Observation::variance, Observation::weights,
          Observation::steps}},
        {"STEP.EMPTY",
         "A step without any micro-step before it is a step with a gradient of zero, or changes "
         "nothing, as the subject declares.",
         kSource,
         "FC02, FC20",
         "not exercised: no step without gradients was taken",
         [](const Case& c) { return trains(c) && !empty_steps(c).empty(); },
         empty_step,
         {Observation::master, Observation::momentum}},
    };
}

}  // namespace zeroproof::suites
