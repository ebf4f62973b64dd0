#include "suites/conformance/evidence_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "suites/conformance/comparison.h"
#include "suites/conformance/transport.h"

namespace zeroproof::suites {

namespace {

bool same_place(const OwnedSlice& a, const OwnedSlice& b) {
    return a.parameter == b.parameter && a.begin == b.begin && a.elements == b.elements;
}

// As many values as elements, or none of what is not observed.
bool has_form(const std::vector<float>& values, std::size_t elements, bool observed) {
    return observed ? values.size() == elements : values.empty();
}

std::string missing_in(const Case& c, const Snapshot& snapshot, const Observations& observed) {
    if (snapshot.action < -1 || snapshot.action >= static_cast<int>(c.program.size()))
        return "an action of the program";
    for (const OwnedSlice& slice : snapshot.owned) {
        if (slice.parameter >= c.parameters.size()) return "a parameter of the case";
        const std::size_t elements = slice.elements;
        if (!has_form(slice.master, elements, observed.has(Observation::master)) ||
            !has_form(slice.momentum, elements, observed.has(Observation::momentum)) ||
            !has_form(slice.variance, elements, observed.has(Observation::variance)) ||
            (!slice.gradient.empty() && slice.gradient.size() != elements))
            return "masters, moments and gradients of each element";
    }
    if (!observed.has(Observation::weights)) return {};
    if (snapshot.weights.size() != c.parameters.size()) return "the weights";
    for (std::size_t p = 0; p < c.parameters.size(); ++p)
        if (snapshot.weights[p].size() != c.parameters[p].elements())
            return fmt::format("the weights of {}", c.parameters[p].name);
    return {};
}

// Actions of a part of the program after which there is a snapshot.
std::vector<int> actions_of_part(const Case& c, bool behind_reload) {
    std::vector<int> actions;
    if (!behind_reload) actions.push_back(-1);
    for (int a = 0; a < static_cast<int>(c.program.size()); ++a)
        if (after_reload(c, a) == behind_reload &&
            c.program[static_cast<std::size_t>(a)].kind != ActionKind::micro_step)
            actions.push_back(a);
    return actions;
}

std::string missing_in(const Case& c, const RankEvidence& rank, bool behind_reload,
                       const Observations& observed) {
    if (!std::ranges::equal(rank.snapshots, actions_of_part(c, behind_reload), {},
                            &Snapshot::action))
        return "a snapshot after every action that is no micro-step";
    if (rank.collective_actions.size() != rank.collectives.size())
        return "the action of each collective";
    for (const Snapshot& snapshot : rank.snapshots) {
        if (const std::string what = missing_in(c, snapshot, observed); !what.empty())
            return fmt::format("{} after action {}", what, snapshot.action);
        if (!c.changes_trainable() &&
            !std::ranges::equal(snapshot.owned, rank.snapshots.front().owned, same_place))
            return fmt::format("after action {} what it owned at first", snapshot.action);
    }
    for (const Snapshot& snapshot : rank.snapshots)
        for (const OwnedSlice& slice : snapshot.owned)
            if (observed.has(Observation::gradient) && snapshot.action >= 0 &&
                snapshot.kind == ActionKind::step && !snapshot.skipped &&
                slice.gradient.size() != slice.elements)
                return fmt::format("the reduced gradients of action {}", snapshot.action);
    for (const Echo& echo : rank.echoes)
        if (echo.parameter >= c.parameters.size() || echo.unit >= c.units.size())
            return "the unit or parameter of an echo";
    return {};
}

std::string missing_in_transport(const Case& c, const Evidence& evidence) {
    const auto operations = transport_operations(c.transport->type, c.ranks);
    if (evidence.transport.size() != operations.size())
        return fmt::format("the results of {} operations; there are {}", operations.size(),
                           evidence.transport.size());
    for (const TransportResult& result : evidence.transport)
        if (result.outputs.size() != static_cast<std::size_t>(c.ranks))
            return fmt::format("the output of every rank for {}", result.operation);
    return {};
}

}  // namespace

std::string what_is_missing(const Case& c, const Evidence& evidence) {
    if (c.transport) return missing_in_transport(c, evidence);
    const std::size_t segments = c.has_reload() ? 2 : 1;
    if (evidence.segments.size() != segments)
        return fmt::format("{} parts of the run; there are {}", segments, evidence.segments.size());
    for (std::size_t s = 0; s < segments; ++s) {
        const Segment& segment = evidence.segments[s];
        const int action = s == 0 ? -1 : static_cast<int>(c.program.size());
        if (segment.ranks != ranks_at(c, action) || segment.stage != stage_at(c, action))
            return fmt::format("a run on {} ranks in stage {}; this one is on {} in stage {}",
                               ranks_at(c, action), stage_at(c, action), segment.ranks,
                               segment.stage);
        if (segment.ranks < 1 || segment.by_rank.size() != static_cast<std::size_t>(segment.ranks))
            return fmt::format("evidence of all {} ranks", segment.ranks);
        for (std::size_t rank = 0; rank < segment.by_rank.size(); ++rank)
            if (const std::string what =
                    missing_in(c, segment.by_rank[rank], s > 0, evidence.observed);
                !what.empty())
                return fmt::format("rank {}: {}", rank, what);
    }
    return {};
}

}  // namespace zeroproof::suites
