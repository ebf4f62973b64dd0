// The transport itself: checked before any ZeRO case, since its faults are not the
// implementation's.
#include "suites/conformance/transport.h"

#include "suites/conformance/comparison.h"

namespace zeroproof::suites {

std::vector<Clause> transport_clauses();

namespace {

using collectives::Op;
using collectives::Reduction;

bool is_transport(const Case& c) {
    return c.transport.has_value();
}

Judgement compare(const Context& context, bool (*wanted)(const TransportOperation&)) {
    const Case& c = context.c;
    Comparison comparison;
    const auto operations = transport_operations(c.transport->type, c.ranks);
    for (std::size_t o = 0; o < operations.size(); ++o) {
        if (!wanted(operations[o])) continue;
        for (int rank = 0; rank < c.ranks; ++rank) {
            const auto expected = transport_output(operations[o], *c.transport, c.ranks, rank);
            const auto& seen =
                context.evidence.transport[o].outputs[static_cast<std::size_t>(rank)];
            if (seen.size() != expected.size())
                comparison.check(false, [&] {
                    return Discrepancy{.quantity = operations[o].name + ", elements",
                                       .expected = fmt::format("{}", expected.size()),
                                       .seen = fmt::format("{}", seen.size()),
                                       .rank = rank};
                });
            for (std::size_t i = 0; i < std::min(seen.size(), expected.size()); ++i)
                comparison.check(seen[i] == expected[i], [&] {
                    return Discrepancy{.quantity = fmt::format("{} of {}", operations[o].name,
                                                               memory::name_of(c.transport->type)),
                                       .expected = full(expected[i]),
                                       .seen = full(seen[i]),
                                       .rank = rank,
                                       .element = static_cast<long long>(i)};
                });
        }
    }
    return comparison.judgement();
}

bool is_reduction(const TransportOperation& o) {
    return o.reduction != Reduction::none;
}
bool accumulates(const TransportOperation& o) {
    return o.input != TransportInput::exact;
}

Judgement repeatable(const Context& context) {
    Comparison comparison;
    if (context.c.transport->count == 0) return comparison.judgement();
    for (const TransportResult& result : context.evidence.transport)
        comparison.check(result.repeatable, [&] {
            return Discrepancy{.quantity = result.operation + ", done twice",
                               .expected = "the same bits",
                               .seen = "other bits"};
        });
    return comparison.judgement();
}

constexpr std::string_view kOtherwise = "not exercised: the count is zero";
constexpr std::string_view kSource = "docs/specification.md, Transport";

}  // namespace

std::vector<Clause> transport_clauses() {
    return {
        {"TRANSPORT.REDUCTION",
         "A reduction delivers to each rank the sum, mean, maximum or minimum over all ranks, "
         "element by element, in the type of the operation.",
         kSource, "COLL, FC06, FC11, FC12", kOtherwise, is_transport,
         [](const Context& context) {
             return compare(context, [](const TransportOperation& o) {
                 return is_reduction(o) && !accumulates(o);
             });
         }},
        {"TRANSPORT.PLACEMENT",
         "Broadcast, all-gather, all-to-all, send and receive deliver each element unchanged to "
         "the place that belongs to its rank.",
         kSource, "COLL, FC10, FC12", kOtherwise, is_transport,
         [](const Context& context) {
             return compare(context, [](const TransportOperation& o) { return !is_reduction(o); });
         }},
        {"TRANSPORT.ACCUMULATION",
         "A reduction of a 16-bit type is accumulated in fp32 and rounded once.", kSource,
         "FC21, DTYPE", kOtherwise,
         [](const Case& c) {
             return c.transport && memory::size_of(c.transport->type) == 2 && c.ranks > 2;
         },
         [](const Context& context) { return compare(context, accumulates); }},
        {"TRANSPORT.REPEATABLE", "The same operation on the same inputs gives the same bits.",
         kSource, "RACE, COLL", kOtherwise, is_transport, repeatable},
    };
}

}  // namespace zeroproof::suites
