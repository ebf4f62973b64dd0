#include "harness/programs/decidable.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "suites/conformance/case_writer.h"
#include "suites/conformance/family.h"
#include "suites/conformance/oracle.h"

namespace zeroproof::harness {

namespace {

using suites::ActionKind;
using suites::Bounded;
using suites::Expected;

constexpr double kLargestHalf = 65504;
constexpr double kSmallestNormalHalf = 0x1p-14;
// A norm that is summed in fp32 is within this of the true one, for as many elements as there are.
constexpr double kNearby = 0x1p-8;
constexpr double kWidestBound = 0.25;  // relative, of values above 1

bool defined(const Case& c) {
    bool saved = false;
    for (const suites::Action& action : c.program) {
        if (action.kind == ActionKind::save) saved = true;
        if (action.kind == ActionKind::reload) saved = false;
        if (action.kind == ActionKind::load && !saved) return false;
        if (action.kind == ActionKind::scale_weight && !c.parameters[action.parameter].trainable)
            return false;
    }
    const bool saves = c.has(ActionKind::save) || c.has_reload();
    return !saves || !c.changes_trainable();
}

Bounded norm_of(const Expected& expected) {
    Bounded norm;
    for (const suites::ExpectedParameter& parameter : expected.parameters)
        for (const Bounded& g : parameter.gradient)
            if (parameter.trained) {
                norm.value += g.value * g.value;
                norm.error += 2 * std::abs(g.value) * g.error + g.error * g.error;
            }
    norm.value = std::sqrt(norm.value);
    norm.error = norm.value > 0 ? norm.error / norm.value : std::sqrt(norm.error);
    return norm;
}

bool clear_of(Bounded norm, double bound, const suites::Declaration& declaration) {
    if (!std::isfinite(norm.value)) return true;  // skipped
    if (norm.value == bound && norm.error == 0 && declaration.meanings.clip_epsilon == 0 &&
        declaration.norm_accumulation == memory::DType::fp64)
        return true;  // the quotient is 1 either way
    return std::abs(norm.value + declaration.meanings.clip_epsilon - bound) >
           norm.error + kNearby * bound;
}

const Expected& after(const std::vector<Expected>& expected, std::size_t action) {
    return *std::ranges::find(expected, static_cast<int>(action), &Expected::action);
}

bool clips_clearly(const Case& c, const std::vector<Expected>& expected,
                   const suites::Declaration& declaration) {
    if (c.clip_norm > 0)
        for (const Expected& e : expected)
            if (e.action >= 0 && e.kind == ActionKind::step &&
                !clear_of(e.norm, c.clip_norm, declaration))
                return false;
    for (std::size_t a = 0; a < c.program.size(); ++a) {
        if (c.program[a].kind != ActionKind::clip) continue;
        Case without = c;
        without.program[a].value = 1e300;  // which leaves the norm that the clip comes upon
        const Bounded norm = norm_of(after(suites::expect(without, declaration.meanings), a));
        if (!clear_of(norm, c.program[a].value, declaration)) return false;
    }
    return true;
}

// An edit of a gradient rounds like a normal number only while it is one.
bool stays_in_half(const Case& c, const std::vector<Expected>& expected) {
    double largest_scale = 1;
    double smallest_scale = c.loss_scale.initial;
    for (const Expected& e : expected) {
        largest_scale = std::max(largest_scale, e.loss_scale);
        smallest_scale = std::min(smallest_scale, e.loss_scale);
    }
    const double contributions = double{1} * std::max(c.ranks, c.resume_ranks) * c.micro_steps;
    if (c.gradients == suites::GradientKind::rounding) {
        std::size_t uses = 1;
        for (std::size_t p = 0; p < c.parameters.size(); ++p)
            uses = std::max(uses, suites::uses_of(c, p));
        if (contributions * static_cast<double>(uses) * largest_scale > kLargestHalf) return false;
    }
    if (!c.has(ActionKind::clip) && !c.has(ActionKind::scale_gradient)) return true;
    for (const Expected& e : expected)
        for (const suites::ExpectedParameter& parameter : e.parameters)
            for (const Bounded& g : parameter.gradient) {
                const double size = std::abs(g.value);
                if (size == 0 || !std::isfinite(size)) continue;
                if (size * smallest_scale < kSmallestNormalHalf ||
                    size * largest_scale * contributions > kLargestHalf)
                    return false;
            }
    return true;
}

bool bounds_are_narrow(const std::vector<Expected>& expected) {
    const auto narrow = [](const Bounded& b) {
        return !std::isfinite(b.value) ||
               (b.error >= 0 && b.error < kWidestBound * std::max(1.0, std::abs(b.value)));
    };
    return std::ranges::all_of(expected, [&](const Expected& e) {
        return std::ranges::all_of(e.parameters, [&](const suites::ExpectedParameter& p) {
            return std::ranges::all_of(p.gradient, narrow) &&
                   std::ranges::all_of(p.momentum, narrow) &&
                   std::ranges::all_of(p.variance, narrow) && std::ranges::all_of(p.master, narrow);
        });
    });
}

}  // namespace

std::optional<Case> legal(const Case& c) {
    if (c.program.empty() || c.parameters.empty() || c.units.empty()) return {};
    try {
        return suites::read_family(suites::case_to_json(c).dump(), "program").front();
    } catch (const scenarios::BadInput&) {
        return {};
    }
}

bool decidable(const Case& c, const suites::Declaration& declaration) {
    if (!defined(c)) return false;
    const bool clips = c.clip_norm > 0 || c.has(ActionKind::clip);
    const bool rounds = c.gradients == suites::GradientKind::rounding;
    const bool half = c.precision == suites::Precision::fp16;
    if (!clips && !rounds && !(half && c.has(ActionKind::scale_gradient))) return true;
    const std::vector<Expected> expected = suites::expect(c, declaration.meanings);
    return bounds_are_narrow(expected) && clips_clearly(c, expected, declaration) &&
           (!half || stays_in_half(c, expected));
}

}  // namespace zeroproof::harness
