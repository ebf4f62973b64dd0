// The weights that the model computes with.
#include <cmath>
#include <map>

#include "suites/conformance/comparison.h"
#include "suites/conformance/gradients.h"

namespace zeroproof::suites {

std::vector<Clause> weight_clauses();

namespace {

float rounded(float value, memory::DType type) {
    double room = 0;
    memory::store_element(type, &room, 0, double{value});
    return static_cast<float>(memory::load_element(type, &room, 0));
}

float initial_weight(const Case& c, std::size_t parameter, std::size_t element) {
    return rounded(static_cast<float>(Gradients::initial_weight(c, parameter, element)),
                   weight_type(c.precision));
}

Judgement cast(const Context& context) {
    const Case& c = context.c;
    const memory::DType type = weight_type(c.precision);
    Comparison comparison;
    for_each_owned_element(
        context, [](const Snapshot& s) { return !s.weights.empty(); },
        [&](const OwnedElement& where) {
            const float seen = where.snapshot.weights[where.slice.parameter][where.element];
            const float expected = rounded(where.slice.master[where.index], type);
            comparison.check(same_bits(seen, expected) || seen == expected, [&] {
                Discrepancy d = at(c, where, "weight, the owner's master rounded to nearest even",
                                   full(double{expected}), full(double{seen}));
                d.diagnosis = "weight and master have come apart";
                return d;
            });
        });
    return comparison.judgement("no rank owns anything");
}

Judgement replicas(const Context& context) {
    Comparison comparison;
    for_each_beside_rank_0(context, [&](const Segment& segment, int rank, const Snapshot& ours,
                                        const Snapshot& first) {
        for (std::size_t p = 0; p < ours.weights.size(); ++p)
            for (std::size_t e = 0; e < ours.weights[p].size(); ++e)
                comparison.check(same_bits(ours.weights[p][e], first.weights[p][e]), [&] {
                    return Discrepancy{.quantity = "weight, against that of rank 0",
                                       .expected = full(double{first.weights[p][e]}),
                                       .seen = full(double{ours.weights[p][e]}),
                                       .rank = rank,
                                       .owner = owner_of(segment, ours.action, p, e),
                                       .action = ours.action,
                                       .step = step_number(context.c, ours.action),
                                       .parameter = context.c.parameters[p].name,
                                       .element = static_cast<long long>(e),
                                       .diagnosis = "replicas have drifted apart"};
                });
    });
    return comparison.judgement("a single rank has no replicas");
}

// What every pass must use from a snapshot on: the owners' masters, rounded, and frozen weights as
// they began. Not the weights that ranks say they see: those may be as stale as what they use.
std::vector<std::vector<float>> weights_of(const Case& c, const Segment& segment,
                                           std::size_t snapshot) {
    std::vector<std::vector<float>> weights;
    for (std::size_t p = 0; p < c.parameters.size(); ++p) {
        std::vector<float>& values = weights.emplace_back(c.parameters[p].elements());
        for (std::size_t e = 0; e < values.size(); ++e) values[e] = initial_weight(c, p, e);
    }
    for (const RankEvidence& rank : segment.by_rank)
        for (const OwnedSlice& slice : rank.snapshots[snapshot].owned)
            for (std::size_t i = 0; i < slice.master.size(); ++i)
                if (slice.begin + i < weights[slice.parameter].size())
                    weights[slice.parameter][slice.begin + i] =
                        rounded(slice.master[i], weight_type(c.precision));
    return weights;
}

// How many echoes a part of the program must leave: one for each parameter of each unit, in the
// forward and the backward of each micro-step and in the forward of each evaluation.
std::size_t echoes_of_part(const Case& c, bool behind_reload) {
    std::size_t uses = 0;
    for (const UnitCase& unit : c.units) uses += unit.parameters.size();
    std::size_t passes = 0;
    for (int a = 0; a < static_cast<int>(c.program.size()); ++a) {
        if (after_reload(c, a) != behind_reload) continue;
        const ActionKind kind = c.program[static_cast<std::size_t>(a)].kind;
        passes += kind == ActionKind::micro_step ? 2 : kind == ActionKind::evaluate ? 1 : 0;
    }
    return passes * uses;
}

Judgement fresh(const Context& context) {
    const Case& c = context.c;
    Comparison comparison;
    for (std::size_t s = 0; s < context.evidence.segments.size(); ++s) {
        const Segment& segment = context.evidence.segments[s];
        std::map<int, std::vector<std::vector<float>>> weights;  // by action, from then on
        const auto& snapshots = segment.by_rank.front().snapshots;
        for (std::size_t i = 0; i < snapshots.size(); ++i)
            weights[snapshots[i].action] = weights_of(c, segment, i);
        for (std::size_t rank = 0; rank < segment.by_rank.size(); ++rank) {
            const std::size_t echoes = segment.by_rank[rank].echoes.size();
            if (echoes != echoes_of_part(c, s > 0))
                return {Verdict::not_observable,
                        fmt::format("rank {} shows {} of {} uses of a parameter", rank, echoes,
                                    echoes_of_part(c, s > 0)),
                        {},
                        0};
            for (const Echo& echo : segment.by_rank[rank].echoes) {
                const auto in_force = weights.lower_bound(echo.action);  // the first not before it
                if (in_force == weights.begin()) continue;
                const int since = std::prev(in_force)->first;
                const std::vector<float>& expected = std::prev(in_force)->second[echo.parameter];
                if (echo.weights.size() != expected.size())
                    comparison.check(false, [&] {
                        return Discrepancy{.quantity = "elements of a parameter in use",
                                           .expected = fmt::format("{}", expected.size()),
                                           .seen = fmt::format("{}", echo.weights.size()),
                                           .rank = static_cast<int>(rank),
                                           .action = echo.action,
                                           .parameter = c.parameters[echo.parameter].name};
                    });
                for (std::size_t e = 0; e < echo.weights.size() && e < expected.size(); ++e)
                    comparison.check(same_bits(echo.weights[e], expected[e]), [&] {
                        return Discrepancy{
                            .quantity = fmt::format("weight used by the {} of {}",
                                                    echo.backward ? "backward" : "forward",
                                                    c.units[echo.unit].name),
                            .expected = full(double{expected[e]}),
                            .seen = full(double{echo.weights[e]}),
                            .rank = static_cast<int>(rank),
                            .owner = owner_of(segment, since, echo.parameter, e),
                            .action = echo.action,
                            .step = step_number(c, echo.action) + 1,
                            .parameter = c.parameters[echo.parameter].name,
                            .element = static_cast<long long>(e),
                            .diagnosis = std::isnan(echo.weights[e])
                                             ? "poison: used before it was gathered, or after it "
                                               "was freed"
                                             : "not the weights of the last step: stale"};
                    });
            }
        }
    }
    return comparison.judgement("no pass was echoed");
}

Judgement frozen(const Context& context) {
    const Case& c = context.c;
    Comparison comparison;
    for_each_snapshot(
        context, [&](const Segment&, int rank, const Snapshot& snapshot, const Expected&) {
            for (std::size_t p = 0; p < snapshot.weights.size(); ++p)
                for (std::size_t e = 0;
                     !c.parameters[p].trainable && e < snapshot.weights[p].size(); ++e) {
                    const float expected = initial_weight(c, p, e);
                    comparison.check(same_bits(snapshot.weights[p][e], expected), [&] {
                        return Discrepancy{.quantity = "frozen weight",
                                           .expected = full(double{expected}),
                                           .seen = full(double{snapshot.weights[p][e]}),
                                           .rank = rank,
                                           .action = snapshot.action,
                                           .step = step_number(c, snapshot.action),
                                           .parameter = c.parameters[p].name,
                                           .element = static_cast<long long>(e)};
                    });
                }
        });
    return comparison.judgement();
}

Judgement initial(const Context& context) {
    const Case& c = context.c;
    Comparison comparison;
    for_each_snapshot(
        context, [&](const Segment&, int rank, const Snapshot& snapshot, const Expected&) {
            if (snapshot.action != -1) return;
            for (std::size_t p = 0; p < snapshot.weights.size(); ++p)
                for (std::size_t e = 0; e < snapshot.weights[p].size(); ++e) {
                    const float expected = initial_weight(c, p, e);
                    comparison.check(same_bits(snapshot.weights[p][e], expected), [&] {
                        return Discrepancy{.quantity = "weight before any training",
                                           .expected = full(double{expected}),
                                           .seen = full(double{snapshot.weights[p][e]}),
                                           .rank = rank,
                                           .action = -1,
                                           .parameter = c.parameters[p].name,
                                           .element = static_cast<long long>(e)};
                    });
                }
        });
    return comparison.judgement("no elements");
}

}  // namespace

std::vector<Clause> weight_clauses() {
    return {
        {"WEIGHT.INITIAL",
         "Before any training each weight is the model's, on every rank, however it is "
         "partitioned.",
         "docs/specification.md, Weights",
         "FC41, INIT",
         "not exercised: no elements",
         feeds_gradients,
         initial,
         {Observation::weights}},
        {"WEIGHT.CAST",
         "The weight is the master rounded to nearest even, after every step and after every load.",
         "docs/specification.md, Adam",
         "FC22, FC21",
         "not exercised: no rank owns anything",
         trains,
         cast,
         {Observation::weights, Observation::master}},
        {"WEIGHT.REPLICAS",
         "All ranks see the same bits of every weight after every action.",
         "arXiv 1910.02054, section 5.1",
         "FC22, FC42, INIT",
         "not exercised: a single rank",
         [](const Case& c) { return trains(c) && c.has_several_ranks(); },
         replicas,
         {Observation::weights}},
        {"WEIGHT.FRESH",
         "Every forward and backward pass computes with the weights of the last step, load or "
         "beginning, whole and in place.",
         "arXiv 1910.02054, section 5.3",
         "FC13, FC15, FC29, FRESH",
         "not exercised: no pass was made; not observable: not every use of a parameter is shown",
         [](const Case& c) { return trains(c) && c.model == Model::echo; },
         fresh,
         {Observation::echoes, Observation::master}},
        {"FROZEN.UNCHANGED",
         "The bits of a frozen parameter never change.",
         "docs/specification.md, Frozen",
         "FC37, FRZ",
         "",
         [](const Case& c) {
             for (const ParameterCase& parameter : c.parameters)
                 if (!parameter.trainable) return trains(c);
             return false;
         },
         frozen,
         {Observation::weights}},
    };
}

}  // namespace zeroproof::suites
