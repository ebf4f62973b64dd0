// What must make no difference, compared bit for bit with a twin run.
#include <algorithm>

#include "suites/conformance/comparison.h"

namespace zeroproof::suites {

std::vector<Clause> invariance_clauses();

namespace {

// The values of every element after an action, whoever owns it; by parameter.
struct State {
    std::vector<std::vector<float>> gradient;
    std::vector<std::vector<float>> momentum;
    std::vector<std::vector<float>> variance;
    std::vector<std::vector<float>> master;
};

State assemble(const Case& c, const Segment& segment, std::size_t snapshot) {
    std::vector<std::vector<float>> empty;
    for (const ParameterCase& parameter : c.parameters)
        empty.emplace_back(parameter.elements(), 0.0f);
    State state{empty, empty, empty, empty};
    const auto put = [](std::vector<float>& to, std::size_t begin, const std::vector<float>& from) {
        for (std::size_t i = 0; i < from.size() && begin + i < to.size(); ++i)
            to[begin + i] = from[i];
    };
    for (const RankEvidence& rank : segment.by_rank) {
        if (snapshot >= rank.snapshots.size()) continue;
        for (const OwnedSlice& slice : rank.snapshots[snapshot].owned) {
            put(state.gradient[slice.parameter], slice.begin, slice.gradient);
            put(state.momentum[slice.parameter], slice.begin, slice.momentum);
            put(state.variance[slice.parameter], slice.begin, slice.variance);
            put(state.master[slice.parameter], slice.begin, slice.master);
        }
    }
    return state;
}

// The evidence check has seen to it that both have the snapshots of the same program.
void compare(const Context& context, const Segment& ours, const Segment& theirs,
             Comparison& comparison) {
    const Case& c = context.c;
    const Case& twin_case = c.twin.front();
    for (std::size_t s = 0; s < ours.by_rank.front().snapshots.size(); ++s) {
        const int action = ours.by_rank.front().snapshots[s].action;
        const State a = assemble(c, ours, s);
        const State b = assemble(twin_case, theirs, s);
        const auto check = [&](const char* quantity, const auto& mine, const auto& others,
                               std::size_t p) {
            const std::string& name = c.parameters[p].name;
            const auto other = static_cast<std::size_t>(
                std::ranges::find(twin_case.parameters, name, &ParameterCase::name) -
                twin_case.parameters.begin());
            for (std::size_t e = 0; e < mine[p].size(); ++e)
                // A sum that underflows may be a zero of either sign.
                comparison.check(same_bits(mine[p][e], others[other][e]) ||
                                     (mine[p][e] == 0 && others[other][e] == 0),
                                 [&] {
                                     return Discrepancy{.quantity = fmt::format(
                                                            "{}, against the run with another {}",
                                                            quantity, c.twin_of),
                                                        .expected = full(double{others[other][e]}),
                                                        .seen = full(double{mine[p][e]}),
                                                        .owner = owner_of(ours, action, p, e),
                                                        .action = action,
                                                        .step = step_number(c, action),
                                                        .parameter = name,
                                                        .element = static_cast<long long>(e)};
                                 });
        };
        for (std::size_t p = 0; p < c.parameters.size(); ++p) {
            check("reduced gradient", a.gradient, b.gradient, p);
            check("momentum", a.momentum, b.momentum, p);
            check("variance", a.variance, b.variance, p);
            check("master", a.master, b.master, p);
            check("weight of rank 0", ours.by_rank.front().snapshots[s].weights,
                  theirs.by_rank.front().snapshots[s].weights, p);
        }
    }
}

Judgement compare(const Context& context) {
    if (const auto without = without_twin(context)) return *without;
    Comparison comparison;
    for (std::size_t s = 0; s < context.evidence.segments.size(); ++s)
        compare(context, context.evidence.segments[s], context.twin->segments[s], comparison);
    return comparison.judgement();
}

template <std::size_t N>
struct Name {
    char text[N];
    constexpr Name(const char (&t)[N]) { std::copy_n(t, N, text); }
};
template <Name twin>
bool has_twin(const Case& c) {
    return trains(c) && c.twin_of == twin.text;
}

constexpr std::string_view kSource = "docs/specification.md, Invariance";
constexpr std::string_view kOtherwise = "not exercised: the twin could not run here";

}  // namespace

std::vector<Clause> invariance_clauses() {
    return {
        {"INVARIANT.STAGE",
         "With exact gradients every stage gives the same bits as plain data parallelism.",
         "arXiv 1910.02054, section 5",
         "FC06, FC10, FC16",
         kOtherwise,
         has_twin<"stage">,
         compare,
         {Observation::gradient, Observation::momentum, Observation::variance, Observation::master,
          Observation::weights}},
        {"INVARIANT.BUCKET",
         "The size of a bucket changes no bit.",
         kSource,
         "FC07, FC08",
         kOtherwise,
         has_twin<"bucket size">,
         compare,
         {Observation::gradient, Observation::momentum, Observation::variance, Observation::master,
          Observation::weights}},
        {"INVARIANT.OVERLAP",
         "Overlap and prefetch change no bit.",
         kSource,
         "FC13, FC14, FC44",
         kOtherwise,
         has_twin<"overlap">,
         compare,
         {Observation::gradient, Observation::momentum, Observation::variance, Observation::master,
          Observation::weights}},
        {"INVARIANT.GROUPING",
         "How parameters are grouped into units changes no bit.",
         kSource,
         "FC10, FC15",
         kOtherwise,
         has_twin<"grouping">,
         compare,
         {Observation::gradient, Observation::momentum, Observation::variance, Observation::master,
          Observation::weights}},
        {"INVARIANT.ORDER",
         "The order in which parameters are registered changes no bit.",
         kSource,
         "FC10, FC25, FRESH",
         kOtherwise,
         has_twin<"registration order">,
         compare,
         {Observation::gradient, Observation::momentum, Observation::variance, Observation::master,
          Observation::weights}},
        {"INVARIANT.RECOMPUTE",
         "Keeping checkpoints of activations and computing the others again changes no bit, "
         "dropout "
         "included.",
         "docs/specification.md, Activations",
         "RECOMP, FC45",
         kOtherwise,
         has_twin<"recomputation">,
         compare,
         {Observation::gradient, Observation::momentum, Observation::variance, Observation::master,
          Observation::weights}},
        {"INVARIANT.TIMING",
         "Completion as late as the wait, and poison until then, change no bit.",
         kSource,
         "FC13, FC14, RACE",
         kOtherwise,
         has_twin<"timing">,
         compare,
         {Observation::gradient, Observation::momentum, Observation::variance, Observation::master,
          Observation::weights}},
    };
}

}  // namespace zeroproof::suites
