// Evaluation between any two actions.
#include <algorithm>

#include "suites/conformance/comparison.h"

namespace zeroproof::suites {

std::vector<Clause> evaluate_clauses();

namespace {

// States and weights after an evaluation are those of the snapshot before. Gradients that are being
// accumulated are judged at the next step, by the clauses on gradients.
Judgement neutral(const Context& context) {
    Comparison comparison;
    const Case& c = context.c;
    for_each_transition(context, [&](int rank, const Snapshot& before, const Snapshot& after) {
        if (after.kind != ActionKind::evaluate) return;
        compare_states(c, rank, before, after, "after an evaluation", comparison);
        const auto action = static_cast<std::size_t>(after.action);
        const bool mid_window = action > 0 && c.program[action - 1].kind == ActionKind::micro_step;
        comparison.check(mid_window || after.live_bytes == before.live_bytes, [&] {
            return Discrepancy{.quantity = "live bytes after an evaluation",
                               .expected = "as before it",
                               .seen = "others",
                               .rank = rank,
                               .action = after.action};
        });
    });
    return comparison.judgement("nothing was evaluated");
}

bool evaluates(const Case& c) {
    return trains(c) && std::ranges::count(c.program, ActionKind::evaluate, &Action::kind) > 0;
}

}  // namespace

std::vector<Clause> evaluate_clauses() {
    return {{"EVALUATE.NEUTRAL",
             "A forward pass for evaluation, between any two actions, changes no master, moment or "
             "weight, and outside an open window it leaves no memory behind.",
             "docs/specification.md, Evaluation",
             "FC15, FC02",
             "not exercised: nothing was evaluated",
             evaluates,
             neutral,
             {Observation::master, Observation::weights}}};
}

}  // namespace zeroproof::suites
