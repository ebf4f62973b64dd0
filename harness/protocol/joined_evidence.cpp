#include "harness/protocol/joined_evidence.h"

#include <fmt/format.h>

#include <algorithm>

namespace zeroproof::harness {

suites::Evidence without_run(suites::RunStatus status, std::string message) {
    suites::Evidence evidence;
    evidence.status = status;
    evidence.message = std::move(message);
    return evidence;
}

suites::Evidence joined(const PartOfCase& part, std::vector<RankResult> ranks) {
    suites::Evidence evidence;
    const auto with = [&](suites::RunStatus status) {
        return std::ranges::find(ranks, status, &RankResult::status);
    };
    for (const suites::RunStatus status :
         {suites::RunStatus::failed, suites::RunStatus::environment})
        if (const auto at = with(status); at != ranks.end())
            return without_run(status, fmt::format("rank {}: {}", at - ranks.begin(), at->message));
    if (const auto at = with(suites::RunStatus::rejected); at != ranks.end()) {
        const auto other = with(suites::RunStatus::completed);
        if (other == ranks.end()) return without_run(suites::RunStatus::rejected, at->message);
        return without_run(suites::RunStatus::failed,
                           fmt::format("rank {} refuses the case ({}), rank {} runs it",
                                       at - ranks.begin(), at->message, other - ranks.begin()));
    }
    suites::Segment segment{part.part.ranks, part.part.stage, {}};
    for (RankResult& rank : ranks) {
        evidence.observed.keep_common(rank.observed);
        segment.by_rank.push_back(std::move(rank.evidence));
    }
    evidence.segments.push_back(std::move(segment));
    return evidence;
}

}  // namespace zeroproof::harness
