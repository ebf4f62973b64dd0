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
    for (const Segment& segment : context.evidence.segments)
        for (std::size_t rank = 0; rank < segment.by_rank.size(); ++rank) {
            const auto& snapshots = segment.by_rank[rank].snapshots;
            for (std::size_t s = 1; s < snapshots.size(); ++s) {
                if (snapshots[s].kind != ActionKind::evaluate) continue;
                const auto check = [&](const char* quantity, const std::vector<float>& before,
                                       const std::vector<float>& after, std::size_t p,
                                       std::size_t begin) {
                    for (std::size_t i = 0; i < after.size(); ++i)
                        comparison.check(same_bits(before[i], after[i]), [&] {
                            return Discrepancy{
                                .quantity = fmt::format("{} after an evaluation", quantity),
                                .expected = full(double{before[i]}),
                                .seen = full(double{after[i]}),
                                .rank = static_cast<int>(rank),
                                .action = snapshots[s].action,
                                .step = step_number(c, snapshots[s].action),
                                .parameter = c.parameters[p].name,
                                .element = static_cast<long long>(begin + i)};
                        });
                };
                for (std::size_t o = 0; o < snapshots[s].owned.size(); ++o) {
                    const OwnedSlice& before = snapshots[s - 1].owned[o];
                    const OwnedSlice& after = snapshots[s].owned[o];
                    check("master", before.master, after.master, after.parameter, after.begin);
                    check("momentum", before.momentum, after.momentum, after.parameter,
                          after.begin);
                    check("variance", before.variance, after.variance, after.parameter,
                          after.begin);
                }
                for (std::size_t p = 0; p < snapshots[s].weights.size(); ++p)
                    check("weight", snapshots[s - 1].weights[p], snapshots[s].weights[p], p, 0);
                const bool same_memory = snapshots[s].live_bytes == snapshots[s - 1].live_bytes;
                const auto action = static_cast<std::size_t>(snapshots[s].action);
                const bool mid_window =
                    action > 0 && c.program[action - 1].kind == ActionKind::micro_step;
                comparison.check(same_memory || mid_window, [&] {
                    return Discrepancy{.quantity = "live bytes after an evaluation",
                                       .expected = "as before it",
                                       .seen = "others",
                                       .rank = static_cast<int>(rank),
                                       .action = snapshots[s].action};
                });
            }
        }
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
             "docs/specification.md, Evaluation", "FC15, FC02",
             "not exercised: nothing was evaluated", evaluates, neutral}};
}

}  // namespace zeroproof::suites
