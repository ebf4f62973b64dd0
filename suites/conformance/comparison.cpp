#include "suites/conformance/comparison.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace zeroproof::suites {

Judgement Comparison::judgement(std::string_view if_nothing_compared) const {
    if (compared_ == 0) return {Verdict::not_exercised, std::string(if_nothing_compared), {}, 0};
    if (failed_ == 0) return {};
    return {Verdict::fail, {}, first_, failed_ - 1};
}

std::string full(double value) {
    return fmt::format("{:.17g} ({:a})", value, value);
}

std::string full(Bounded value) {
    if (value.error == 0) return full(value.value);
    return fmt::format("{:.17g} within {:.3g}", value.value, value.error);
}

bool matches(double seen, Bounded expected) {
    if (!std::isfinite(expected.value) || !std::isfinite(seen))
        return seen == expected.value || (std::isnan(seen) && std::isnan(expected.value));
    return std::abs(seen - expected.value) <= expected.error;
}

bool same_bits(float a, float b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

std::optional<Judgement> without_twin(const Context& context) {
    const Case& c = context.c;
    if (context.twin == nullptr || context.twin->status == RunStatus::environment)
        return Judgement{Verdict::not_exercised, "the twin could not run here", {}, 0};
    const bool may_refuse = context.declaration.undeclared ||
                            !outside_declaration(c.twin.front(), context.declaration).empty();
    if (context.twin->status == RunStatus::rejected && may_refuse)
        return Judgement{Verdict::not_exercised, "the subject does not support the twin", {}, 0};
    if (context.twin->status == RunStatus::completed) return std::nullopt;
    return Judgement{Verdict::fail,
                     {},
                     {.quantity = fmt::format("the end of the run with another {}", c.twin_of),
                      .expected = "it ends as this one does",
                      .seen = context.twin->message},
                     0};
}

void for_each_snapshot(const Context& context, const VisitSnapshot& visit) {
    for (const Segment& segment : context.evidence.segments)
        for (std::size_t rank = 0; rank < segment.by_rank.size(); ++rank)
            for (const Snapshot& snapshot : segment.by_rank[rank].snapshots)
                for (const Expected& expected : context.expected)
                    if (expected.action == snapshot.action)
                        visit(segment, static_cast<int>(rank), snapshot, expected);
}

void for_each_step(const Context& context, const VisitSnapshot& visit) {
    for_each_snapshot(context, [&](const Segment& segment, int rank, const Snapshot& snapshot,
                                   const Expected& expected) {
        if (snapshot.action >= 0 && snapshot.kind == ActionKind::step)
            visit(segment, rank, snapshot, expected);
    });
}

void for_each_beside_rank_0(
    const Context& context,
    const std::function<void(const Segment&, int, const Snapshot&, const Snapshot&)>& visit) {
    for (const Segment& segment : context.evidence.segments)
        for (std::size_t rank = 1; rank < segment.by_rank.size(); ++rank) {
            const auto& ours = segment.by_rank[rank].snapshots;
            const auto& first = segment.by_rank[0].snapshots;
            for (std::size_t s = 0; s < std::min(ours.size(), first.size()); ++s)
                visit(segment, static_cast<int>(rank), ours[s], first[s]);
        }
}

void for_each_transition(const Context& context,
                         const std::function<void(int, const Snapshot&, const Snapshot&)>& visit) {
    for (const Segment& segment : context.evidence.segments)
        for (std::size_t rank = 0; rank < segment.by_rank.size(); ++rank) {
            const auto& snapshots = segment.by_rank[rank].snapshots;
            for (std::size_t s = 1; s < snapshots.size(); ++s)
                visit(static_cast<int>(rank), snapshots[s - 1], snapshots[s]);
        }
}

void compare_states(const Case& c, int rank, const Snapshot& before, const Snapshot& after,
                    std::string_view when, Comparison& comparison) {
    const auto check = [&](const char* quantity, const std::vector<float>& was,
                           const std::vector<float>& is, std::size_t parameter, std::size_t begin) {
        for (std::size_t i = 0; i < std::min(was.size(), is.size()); ++i)
            comparison.check(same_bits(was[i], is[i]), [&] {
                return Discrepancy{.quantity = fmt::format("{} {}", quantity, when),
                                   .expected = full(double{was[i]}),
                                   .seen = full(double{is[i]}),
                                   .rank = rank,
                                   .action = after.action,
                                   .step = step_number(c, after.action),
                                   .parameter = c.parameters[parameter].name,
                                   .element = static_cast<long long>(begin + i)};
            });
    };
    for (std::size_t o = 0; o < std::min(before.owned.size(), after.owned.size()); ++o) {
        const OwnedSlice& was = before.owned[o];
        const OwnedSlice& is = after.owned[o];
        check("momentum", was.momentum, is.momentum, is.parameter, is.begin);
        check("variance", was.variance, is.variance, is.parameter, is.begin);
        check("master", was.master, is.master, is.parameter, is.begin);
    }
    for (std::size_t p = 0; p < after.weights.size(); ++p)
        check("weight", before.weights[p], after.weights[p], p, 0);
}

int step_number(const Case& c, int action) {
    int steps = 0;
    for (int a = 0; a <= action && a < static_cast<int>(c.program.size()); ++a)
        steps += c.program[static_cast<std::size_t>(a)].kind == ActionKind::step;
    return steps;
}

bool after_reload(const Case& c, int action) {
    for (int a = 0; a <= action && a < static_cast<int>(c.program.size()); ++a)
        if (c.program[static_cast<std::size_t>(a)].kind == ActionKind::reload) return true;
    return false;
}

int ranks_at(const Case& c, int action) {
    return after_reload(c, action) && c.resume_ranks > 0 ? c.resume_ranks : c.ranks;
}

int stage_at(const Case& c, int action) {
    return after_reload(c, action) && c.resume_stage >= 0 ? c.resume_stage : c.stage;
}

void for_each_owned_element(const Context& context,
                            const std::function<bool(const Snapshot&)>& wanted,
                            const std::function<void(const OwnedElement&)>& visit) {
    for_each_snapshot(
        context, [&](const Segment&, int rank, const Snapshot& snapshot, const Expected& expected) {
            if (!wanted(snapshot)) return;
            for (const OwnedSlice& slice : snapshot.owned) {
                if (slice.parameter >= expected.parameters.size()) continue;
                const auto& parameter = expected.parameters[slice.parameter];
                for (std::size_t i = 0; i < slice.elements; ++i)
                    if (slice.begin + i < parameter.master.size())
                        visit({rank, snapshot, expected, slice, i, slice.begin + i});
            }
        });
}

Discrepancy at(const Case& c, const OwnedElement& where, std::string quantity, std::string expected,
               std::string seen) {
    return {.quantity = std::move(quantity),
            .expected = std::move(expected),
            .seen = std::move(seen),
            .rank = where.rank,
            .owner = where.rank,
            .action = where.snapshot.action,
            .step = step_number(c, where.snapshot.action),
            .parameter = c.parameters[where.slice.parameter].name,
            .element = static_cast<long long>(where.element),
            .diagnosis = {}};
}

int owner_of(const Segment& segment, int action, std::size_t parameter, std::size_t element) {
    for (std::size_t rank = 0; rank < segment.by_rank.size(); ++rank)
        for (const Snapshot& snapshot : segment.by_rank[rank].snapshots)
            if (snapshot.action == action)
                for (const OwnedSlice& slice : snapshot.owned)
                    if (slice.parameter == parameter && slice.begin <= element &&
                        element - slice.begin < slice.elements)
                        return static_cast<int>(rank);
    return -1;
}

}  // namespace zeroproof::suites
