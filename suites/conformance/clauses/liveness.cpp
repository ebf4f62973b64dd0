// Whether the run comes to its end, on all ranks alike.
#include <map>

#include "suites/conformance/comparison.h"

namespace zeroproof::suites {

std::vector<Clause> liveness_clauses();

namespace {

bool trains_or_tests_transport(const Case& c) {
    return c.features.empty();
}

Judgement end(const Context& context) {
    const Evidence& evidence = context.evidence;
    if (evidence.status == RunStatus::environment)
        return {Verdict::environment, evidence.message, {}, 0};
    if (evidence.status == RunStatus::rejected)
        return {Verdict::not_exercised, "the case was rejected", {}, 0};
    if (evidence.status == RunStatus::completed) return {};
    return {Verdict::fail,
            {},
            {.quantity = "the end of the run",
             .expected = "every rank comes to the end of the program",
             .seen = evidence.message},
            0};
}

std::string tell(const collectives::CollectiveRecord& record) {
    collectives::Operation operation;
    operation.op = record.op;
    operation.type = record.type;
    operation.reduction = record.reduction;
    operation.in_elements = record.in_elements;
    // A reduction has its output on the root alone.
    operation.out_elements =
        record.op == collectives::Op::reduce ? record.in_elements : record.out_elements;
    operation.peer = record.peer;
    return collectives::describe(operation);
}

Judgement sequence(const Context& context) {
    if (context.evidence.status == RunStatus::rejected)
        return {Verdict::not_exercised, "the case was rejected", {}, 0};
    Comparison comparison;
    for (const Segment& segment : context.evidence.segments) {
        const auto by_class = [](const RankEvidence& rank) {
            std::map<collectives::Traffic, std::vector<const collectives::CollectiveRecord*>> split;
            for (const auto& record : rank.collectives) split[record.traffic].push_back(&record);
            return split;
        };
        if (segment.by_rank.empty()) continue;
        auto first = by_class(segment.by_rank.front());
        for (std::size_t rank = 1; rank < segment.by_rank.size(); ++rank) {
            auto ours = by_class(segment.by_rank[rank]);
            for (const auto traffic :
                 {collectives::Traffic::gradient, collectives::Traffic::parameter,
                  collectives::Traffic::control}) {
                const auto& a = first[traffic];
                const auto& b = ours[traffic];
                for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
                    const std::string expected = i < a.size() ? tell(*a[i]) : "nothing";
                    const std::string seen = i < b.size() ? tell(*b[i]) : "nothing";
                    comparison.check(expected == seen, [&] {
                        return Discrepancy{
                            .quantity = fmt::format("operation {} of {}, against rank 0", i,
                                                    collectives::name_of(traffic)),
                            .expected = expected,
                            .seen = seen,
                            .rank = static_cast<int>(rank)};
                    });
                }
            }
        }
    }
    return comparison.judgement("a single rank, or nothing was sent");
}

constexpr std::string_view kSource = "docs/specification.md, Liveness";

}  // namespace

std::vector<Clause> liveness_clauses() {
    return {
        {"LIVENESS.END",
         "Every rank comes to the end of the program: none throws, none waits for an operation "
         "that another does not start, and all agree on operation, type and count.",
         kSource, "FC43, FC05, FC12, FC19", "not exercised: the case was rejected",
         trains_or_tests_transport, end},
        {"LIVENESS.SEQUENCE",
         "All ranks start the same operations in the same order within each kind of traffic, "
         "whatever their gradients and whichever parameters they use.",
         kSource,
         "FC43, FC05, FC19",
         "not exercised: the case was rejected",
         [](const Case& c) { return trains(c) && c.has_several_ranks(); },
         sequence,
         {Observation::collectives}},
    };
}

}  // namespace zeroproof::suites
