// The reduced gradient, element by element.
#include <algorithm>

#include "suites/conformance/comparison.h"
#include "suites/conformance/diagnosis.h"

namespace zeroproof::suites {

std::vector<Clause> gradient_clauses();

namespace {

using Wanted = bool (*)(const Case&, std::size_t parameter);

Judgement compare(const Context& context, Wanted wanted) {
    const Case& c = context.c;
    Comparison comparison;
    for_each_owned_element(
        context,
        [](const Snapshot& s) { return s.kind == ActionKind::step && s.action >= 0 && !s.skipped; },
        [&](const OwnedElement& where) {
            const std::size_t p = where.slice.parameter;
            if (where.expected.skipped || !wanted(c, p) || where.slice.gradient.empty()) return;
            const double seen = double{where.slice.gradient[where.index]};
            const Bounded expected = where.expected.parameters[p].gradient[where.element];
            comparison.check(matches(seen, expected), [&] {
                Discrepancy d =
                    at(c, where, "reduced gradient (mean over ranks and micro-steps, unscaled)",
                       full(expected), full(seen));
                d.diagnosis =
                    diagnose_gradient(c, ranks_at(c, where.snapshot.action), where.expected,
                                      context.expected, p, where.element, seen);
                return d;
            });
        });
    return comparison.judgement("no step was taken, or nothing is of this kind");
}

// Whether a zero_grad finds something to discard: a micro-step of an open window.
bool discards(const Case& c) {
    bool open = false;
    for (const Action& action : c.program) {
        if (action.kind == ActionKind::zero_grad && open) return true;
        if (action.kind == ActionKind::micro_step) open = true;
        if (action.kind == ActionKind::step || action.kind == ActionKind::zero_grad) open = false;
    }
    return false;
}
bool is_exact(const Case& c) {
    return trains(c) && c.gradients == GradientKind::exact && !discards(c);
}
bool is_plain(const Case& c, std::size_t p) {
    return c.parameters[p].usage == Usage::always && uses_of(c, p) == 1;
}
bool any_parameter(const Case& c, Wanted wanted) {
    for (std::size_t p = 0; p < c.parameters.size(); ++p)
        if (wanted(c, p)) return true;
    return false;
}
bool is_tied(const Case& c, std::size_t p) {
    return c.parameters[p].trainable && uses_of(c, p) > 1;
}
bool is_partly_used(const Case& c, std::size_t p) {
    return c.parameters[p].trainable &&
           (c.parameters[p].usage != Usage::always || uses_of(c, p) == 0);
}
bool is_any(const Case&, std::size_t) {
    return true;
}

constexpr std::string_view kSource = "docs/specification.md, Average; arXiv 1910.02054, section 5";
constexpr std::string_view kOtherwise = "not exercised: no step was taken";

}  // namespace

std::vector<Clause> gradient_clauses() {
    return {
        {"GRADIENT.MEAN",
         "The gradient that the optimizer sees is the sum over ranks divided by their number, for "
         "each element, whatever bucket it lies in and whoever owns it.",
         kSource,
         "FC06, FC07, FC08, FC09, FC10, AVG",
         kOtherwise,
         [](const Case& c) { return is_exact(c) && c.micro_steps == 1; },
         [](const Context& context) { return compare(context, is_plain); },
         {Observation::gradient}},
        {"GRADIENT.ACCUMULATION",
         "Over a window of several micro-steps the gradient that the optimizer sees is the sum "
         "over ranks and micro-steps divided by N * GA: each micro-step of the window once, and "
         "none of another window.",
         kSource,
         "FC01, FC02, FC03, FC06, ACC",
         kOtherwise,
         [](const Case& c) { return is_exact(c) && c.micro_steps > 1; },
         [](const Context& context) { return compare(context, is_plain); },
         {Observation::gradient}},
        {"GRADIENT.BOUND",
         "Gradients whose sums round differ from the exact mean by no more than the roundings of "
         "the gradient's type allow.",
         kSource,
         "FC21, DTYPE",
         kOtherwise,
         [](const Case& c) { return trains(c) && c.gradients == GradientKind::rounding; },
         [](const Context& context) { return compare(context, is_any); },
         {Observation::gradient}},
        {"TIED.SUM",
         "A parameter that is used several times, by several units or by one that runs again, is "
         "one parameter: its gradient is the sum over its uses.",
         "docs/specification.md, Tied and looped",
         "FC04, TIE",
         kOtherwise,
         [](const Case& c) { return is_exact(c) && any_parameter(c, is_tied); },
         [](const Context& context) { return compare(context, is_tied); },
         {Observation::gradient}},
        {"UNUSED.ZERO",
         "A parameter contributes zero where a rank or a micro-step does not use it; the others' "
         "contributions are averaged over all N * GA nevertheless.",
         "docs/specification.md, Unused",
         "FC05, FRZ",
         kOtherwise,
         [](const Case& c) { return is_exact(c) && any_parameter(c, is_partly_used); },
         [](const Context& context) { return compare(context, is_partly_used); },
         {Observation::gradient}},
        {"GRADIENT.DISCARD",
         "zero_grad in the middle of a window discards what was accumulated, and the window's "
         "count restarts.",
         "docs/specification.md, zero_grad",
         "FC02, ACC",
         kOtherwise,
         [](const Case& c) {
             return trains(c) && c.gradients == GradientKind::exact && discards(c);
         },
         [](const Context& context) { return compare(context, is_any); },
         {Observation::gradient}},
    };
}

}  // namespace zeroproof::suites
