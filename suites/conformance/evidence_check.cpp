#include "suites/conformance/evidence_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "suites/conformance/transport.h"

namespace zeroproof::suites {

namespace {

bool same_place(const OwnedSlice& a, const OwnedSlice& b) {
    return a.parameter == b.parameter && a.begin == b.begin && a.master.size() == b.master.size();
}

std::string missing_in(const Case& c, const Snapshot& snapshot) {
    if (snapshot.action < -1 || snapshot.action >= static_cast<int>(c.program.size()))
        return "an action of the program";
    for (const OwnedSlice& slice : snapshot.owned) {
        if (slice.parameter >= c.parameters.size()) return "a parameter of the case";
        const std::size_t elements = slice.master.size();
        if (slice.momentum.size() != elements || slice.variance.size() != elements ||
            (!slice.gradient.empty() && slice.gradient.size() != elements))
            return "as many moments and gradients as masters";
    }
    if (snapshot.weights.size() != c.parameters.size()) return "the weights";
    for (std::size_t p = 0; p < c.parameters.size(); ++p)
        if (snapshot.weights[p].size() != c.parameters[p].elements())
            return fmt::format("the weights of {}", c.parameters[p].name);
    return {};
}

std::string missing_in(const Case& c, const RankEvidence& rank) {
    if (rank.snapshots.empty()) return "any snapshot";
    if (rank.collective_actions.size() != rank.collectives.size())
        return "the action of each collective";
    for (const Snapshot& snapshot : rank.snapshots) {
        if (const std::string what = missing_in(c, snapshot); !what.empty())
            return fmt::format("{} after action {}", what, snapshot.action);
        if (!std::ranges::equal(snapshot.owned, rank.snapshots.front().owned, same_place))
            return fmt::format("after action {} what it owned at first", snapshot.action);
    }
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
    for (const Segment& segment : evidence.segments) {
        if (segment.ranks < 1 || segment.by_rank.size() != static_cast<std::size_t>(segment.ranks))
            return fmt::format("evidence of all {} ranks", segment.ranks);
        for (std::size_t rank = 0; rank < segment.by_rank.size(); ++rank)
            if (const std::string what = missing_in(c, segment.by_rank[rank]); !what.empty())
                return fmt::format("rank {}: {}", rank, what);
    }
    return {};
}

}  // namespace zeroproof::suites
