// Who owns what.
#include <cmath>
#include <set>

#include "suites/conformance/comparison.h"
#include "suites/conformance/declared_volume.h"
#include "suites/conformance/partition_model.h"

namespace zeroproof::suites {

std::vector<Clause> partition_clauses();

namespace {

Judgement cover(const Context& context) {
    const Case& c = context.c;
    Comparison comparison;
    for (const Segment& segment : context.evidence.segments) {
        if (segment.by_rank.empty() || segment.by_rank.front().snapshots.empty()) continue;
        const int action = segment.by_rank.front().snapshots.front().action;
        std::vector<std::vector<std::set<int>>> owners(c.parameters.size());  // by element
        for (std::size_t p = 0; p < c.parameters.size(); ++p)
            owners[p].resize(c.parameters[p].elements());
        for (std::size_t rank = 0; rank < segment.by_rank.size(); ++rank)
            for (const OwnedSlice& slice : segment.by_rank[rank].snapshots.front().owned)
                for (std::size_t i = 0; i < slice.elements; ++i)
                    if (slice.begin + i < owners[slice.parameter].size())
                        owners[slice.parameter][slice.begin + i].insert(static_cast<int>(rank));
        const std::size_t wanted =
            segment.stage == 0 ? static_cast<std::size_t>(segment.ranks) : std::size_t{1};
        for (std::size_t p = 0; p < c.parameters.size(); ++p)
            for (std::size_t e = 0; c.parameters[p].trainable && e < owners[p].size(); ++e)
                comparison.check(owners[p][e].size() == wanted, [&] {
                    return Discrepancy{.quantity = "ranks that own an element",
                                       .expected = fmt::format("{}", wanted),
                                       .seen = fmt::format("{}", owners[p][e].size()),
                                       .owner = owners[p][e].empty() ? -1 : *owners[p][e].begin(),
                                       .action = action,
                                       .parameter = c.parameters[p].name,
                                       .element = static_cast<long long>(e),
                                       .diagnosis = owners[p][e].empty()
                                                        ? "nobody will step this element"
                                                        : "several ranks step it"};
                });
    }
    return comparison.judgement("no trainable elements");
}

Judgement exists(const Context& context) {
    const Case& c = context.c;
    Comparison comparison;
    for_each_snapshot(
        context, [&](const Segment&, int rank, const Snapshot& snapshot, const Expected&) {
            for (const OwnedSlice& slice : snapshot.owned) {
                const std::size_t elements = c.parameters[slice.parameter].elements();
                comparison.check(
                    slice.begin <= elements && slice.elements <= elements - slice.begin, [&] {
                        return Discrepancy{.quantity = "end of an owned slice",
                                           .expected = fmt::format("at most {}", elements),
                                           .seen = fmt::format("{}", slice.begin + slice.elements),
                                           .rank = rank,
                                           .action = snapshot.action,
                                           .parameter = c.parameters[slice.parameter].name,
                                           .diagnosis = "padding counts as part of the parameter"};
                    });
            }
        });
    return comparison.judgement("no rank owns anything");
}

Judgement padding(const Context& context) {
    const Case& c = context.c;
    Comparison comparison;
    const auto finite = [&](float value, const OwnedElement& where, const char* quantity) {
        comparison.check(std::isfinite(value), [&] {
            Discrepancy d = at(c, where, quantity, "a finite number", full(double{value}));
            d.diagnosis = "poison: padding or memory that was never written has reached a value";
            return d;
        });
    };
    for_each_owned_element(
        context, [](const Snapshot&) { return true; },
        [&](const OwnedElement& where) {
            finite(where.slice.master[where.index], where, "master");
            finite(where.slice.momentum[where.index], where, "momentum");
            finite(where.slice.variance[where.index], where, "variance");
        });
    for_each_snapshot(
        context, [&](const Segment&, int rank, const Snapshot& snapshot, const Expected&) {
            for (std::size_t p = 0; p < snapshot.weights.size(); ++p)
                for (std::size_t e = 0; e < snapshot.weights[p].size(); ++e)
                    comparison.check(std::isfinite(snapshot.weights[p][e]), [&] {
                        return Discrepancy{.quantity = "weight",
                                           .expected = "a finite number",
                                           .seen = full(double{snapshot.weights[p][e]}),
                                           .rank = rank,
                                           .action = snapshot.action,
                                           .step = step_number(c, snapshot.action),
                                           .parameter = c.parameters[p].name,
                                           .element = static_cast<long long>(e),
                                           .diagnosis =
                                               "poison: padding, or a gather that brought "
                                               "nothing"};
                    });
        });
    return comparison.judgement("no elements");
}

// Elements that all ranks together may own.
std::size_t divided_elements(const Context& context, const Segment& segment, bool as_declared) {
    const DeclaredStage* stage = declared_stage(context, segment);
    if (as_declared && stage != nullptr && stage->bytes.contains(context.c.precision)) {
        const auto& bytes = stage->bytes.at(context.c.precision);
        const auto momentum = bytes.find(memory::Category::momentum);
        if (momentum != bytes.end() && momentum->second.padded.padding != Padding::owned)
            return padded_elements(context.c, segment.ranks, momentum->second.padded,
                                   Counted::trainable);
    }
    return counts_of(context.c, segment.stage, segment.ranks).padded_trainable;
}

Judgement compare_balance(const Context& context, bool as_declared) {
    Comparison comparison;
    for (const Segment& segment : context.evidence.segments) {
        if (segment.stage == 0) continue;
        for (std::size_t rank = 0; rank < segment.by_rank.size(); ++rank) {
            if (segment.by_rank[rank].snapshots.empty()) continue;
            std::size_t owned = 0;
            for (const OwnedSlice& slice : segment.by_rank[rank].snapshots.front().owned)
                owned += slice.elements;
            const auto n = static_cast<std::size_t>(segment.ranks);
            const std::size_t most = divided_elements(context, segment, as_declared) / n;
            comparison.check(owned <= most, [&] {
                return Discrepancy{.quantity = "elements owned",
                                   .expected = fmt::format("at most {}", most),
                                   .seen = fmt::format("{}", owned),
                                   .rank = static_cast<int>(rank),
                                   .diagnosis = "the partition is not even: 1/N is promised"};
            });
        }
    }
    return comparison.judgement("stage 0 does not partition");
}

Judgement balance(const Context& context) {
    return or_as_declared(context, compare_balance(context, false),
                          [&] { return compare_balance(context, true); });
}

constexpr std::string_view kSource =
    "arXiv 1910.02054, section 5.1; docs/specification.md, Partition";

}  // namespace

std::vector<Clause> partition_clauses() {
    return {
        {"PARTITION.COVER",
         "In stages 1 to 3 each element of each trainable parameter is owned by exactly one rank; "
         "in plain data parallelism every rank owns all of them.",
         kSource,
         "FC10, FC12, PART",
         "not exercised: no trainable elements",
         trains,
         cover,
         {Observation::ownership}},
        {"PARTITION.EXTENT",
         "What a rank owns lies within its parameter.",
         kSource,
         "FC09, FC10, PART",
         "not exercised: no rank owns anything",
         trains,
         exists,
         {Observation::ownership}},
        {"PARTITION.BALANCE",
         "No rank owns more than its N-th part of the padded trainable elements.",
         kSource,
         "FC09, FC40, PART",
         "not exercised: stage 0",
         [](const Case& c) { return trains(c) && (c.stage > 0 || c.resume_stage > 0); },
         balance,
         {Observation::ownership}},
        {"PARTITION.PADDING",
         "Padding, and memory that nobody has written, never reaches a weight, a master or a "
         "moment.",
         kSource,
         "FC09, FC08, FC15",
         "not exercised: no elements",
         [](const Case& c) { return trains(c); },
         padding,
         {Observation::master, Observation::momentum, Observation::variance, Observation::weights}},
    };
}

}  // namespace zeroproof::suites
