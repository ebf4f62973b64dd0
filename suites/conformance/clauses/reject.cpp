// What a subject does not support.
#include <algorithm>

#include "suites/conformance/comparison.h"

namespace zeroproof::suites {

std::vector<Clause> reject_clauses();

namespace {

Judgement clear(const Context& context) {
    const std::string outside = outside_declaration(context.c, context.declaration);
    const Evidence& evidence = context.evidence;
    if (evidence.status == RunStatus::environment)
        return {Verdict::environment, evidence.message, {}, 0};
    if (context.declaration.undeclared && evidence.status == RunStatus::completed)
        return {Verdict::not_declared, "the subject does not say what it supports", {}, 0};
    if (context.declaration.undeclared && evidence.status == RunStatus::failed)
        return {Verdict::not_exercised, "the run did not end", {}, 0};
    if (outside.empty() && !context.declaration.undeclared) {
        if (evidence.status == RunStatus::failed)
            return {Verdict::not_exercised, "the run did not end", {}, 0};
        if (evidence.status != RunStatus::rejected) return {};
        return {Verdict::fail,
                {},
                {.quantity = "what becomes of a case that the subject declares to support",
                 .expected = "it runs",
                 .seen = fmt::format("rejected: {}", evidence.message)},
                0};
    }
    const bool began = std::ranges::any_of(evidence.segments, [](const Segment& segment) {
        return std::ranges::any_of(segment.by_rank, [](const RankEvidence& rank) {
            return !rank.snapshots.empty() || !rank.collectives.empty();
        });
    });
    if (evidence.status == RunStatus::rejected && !evidence.message.empty() && !began)
        return {Verdict::rejected, evidence.message, {}, 0};
    return {Verdict::fail,
            {},
            {.quantity = fmt::format("what becomes of a case with {}, which the subject does not "
                                     "declare",
                                     outside),
             .expected = "a refusal that says why, before any work",
             .seen = evidence.status == RunStatus::completed
                         ? "it runs, as if nothing had been asked"
                         : fmt::format("{}: {}", began ? "it begins, and then" : "it fails",
                                       evidence.message),
             .diagnosis = "a silent fallback: the user believes in something that does not happen"},
            0};
}

}  // namespace

std::vector<Clause> reject_clauses() {
    return {{"REJECT.CLEAR",
             "A case outside the declaration is refused with a message before work starts; a case "
             "inside it is not refused.",
             "docs/specification.md, Rejection", "FC40, LABEL",
             "rejected: refused as it should be; not exercised: the run did not end",
             [](const Case& c) { return !c.transport.has_value(); }, clear}};
}

}  // namespace zeroproof::suites
