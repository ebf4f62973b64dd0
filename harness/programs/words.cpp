#include "harness/programs/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "harness/writers/text.h"

namespace zeroproof::harness {

namespace {

using suites::Action;
using suites::ActionKind;
using suites::ParameterCase;

constexpr std::string_view kUsages[] = {"", " used on even ranks", " used in odd micro-steps",
                                        " used where rank + micro-step is even", " never used"};

std::string parameter_in_words(const Case& c, std::size_t p) {
    const ParameterCase& parameter = c.parameters[p];
    std::string text = fmt::format("{} [{}]", parameter.name, fmt::join(parameter.shape, ", "));
    if (!parameter.trainable) text += " frozen";
    const std::size_t uses = suites::uses_of(c, p);
    if (uses == 0) text += " in no unit";
    if (uses > 1) text += fmt::format(" tied in {} units", uses);
    text += kUsages[static_cast<std::size_t>(parameter.usage)];
    if (parameter.gradient_exponent != 0)
        text += fmt::format(" gradient times 2^{}", parameter.gradient_exponent);
    if (c.groups.size() > 1) text += fmt::format(" in group {}", parameter.group);
    return text;
}

std::string group_in_words(const suites::GroupCase& g) {
    const suites::GroupCase usual;
    std::vector<std::string> parts;
    const auto add = [&](const char* name, double value, double by_default) {
        if (value != by_default) parts.push_back(fmt::format("{} {}", name, value));
    };
    add("learning rate", g.learning_rate, usual.learning_rate);
    add("beta1", g.beta1, usual.beta1);
    add("beta2", g.beta2, usual.beta2);
    add("epsilon", g.epsilon, usual.epsilon);
    if (g.weight_decay != 0)
        parts.push_back(fmt::format("{} decay {}", g.l2 ? "L2" : "decoupled", g.weight_decay));
    return fmt::format("{}", fmt::join(parts, ", "));
}

bool is_one_a_parameter(const Case& c) {
    for (std::size_t u = 0; u < c.units.size(); ++u)
        if (c.units[u].parameters != std::vector{u}) return false;
    return c.units.size() == c.parameters.size();
}

std::string units_in_words(const Case& c) {
    std::vector<std::string> units;
    for (const suites::UnitCase& unit : c.units) {
        std::vector<std::string> names;
        for (const std::size_t p : unit.parameters) names.push_back(c.parameters[p].name);
        units.push_back(fmt::format("{}", fmt::join(names, " ")));
    }
    return fmt::format("units ({})", fmt::join(units, "), ("));
}

std::string action_in_words(const Case& c, const Action& action) {
    const std::string name(suites::name_of(action.kind));
    switch (action.kind) {
        case ActionKind::micro_step: {
            std::vector<std::string> unused;
            for (const suites::Unused& u : action.unused)
                unused.push_back(c.parameters[u.parameter].name +
                                 (u.rank < 0 ? "" : fmt::format(" on rank {}", u.rank)));
            return unused.empty()
                       ? "micro-step"
                       : fmt::format("micro-step without {}", fmt::join(unused, " and "));
        }
        case ActionKind::zero_grad: return action.by_model ? "zero_grad by the model" : name;
        case ActionKind::reload: {
            std::string text = name;
            if (c.resume_ranks > 0)
                text += " on " + counted(static_cast<std::size_t>(c.resume_ranks), "rank");
            if (c.resume_stage >= 0) text += fmt::format(" in stage {}", c.resume_stage);
            return text;
        }
        case ActionKind::rate:
            return fmt::format("learning rate {} for group {}", action.value, action.group);
        case ActionKind::clip: return fmt::format("clip to {}", action.value);
        case ActionKind::scale_gradient:
            return fmt::format("gradient of {} times {}", c.parameters[action.parameter].name,
                               action.value);
        case ActionKind::scale_weight:
            return fmt::format("{} times {}", c.parameters[action.parameter].name, action.value);
        case ActionKind::freeze:
        case ActionKind::unfreeze: return name + " " + c.parameters[action.parameter].name;
        case ActionKind::add_group: return fmt::format("add group {}", action.group);
        case ActionKind::step:
        case ActionKind::evaluate:
        case ActionKind::read:
        case ActionKind::save:
        case ActionKind::load: break;
    }
    return name;
}

// Whether a whole window and nothing else begins at the action.
bool is_window(const Case& c, std::size_t begin) {
    const auto micro_steps = static_cast<std::size_t>(c.micro_steps);
    if (begin + micro_steps >= c.program.size()) return false;
    for (std::size_t a = begin; a < begin + micro_steps; ++a)
        if (c.program[a].kind != ActionKind::micro_step || !c.program[a].unused.empty())
            return false;
    return c.program[begin + micro_steps].kind == ActionKind::step;
}

std::string with_count(const std::string& what, std::size_t count) {
    return count == 1 ? what : fmt::format("{} {}s", count, what);
}

bool discards(const Case& c) {
    for (std::size_t a = 1; a < c.program.size(); ++a)
        if (c.program[a].kind == ActionKind::zero_grad &&
            c.program[a - 1].kind == ActionKind::micro_step)
            return true;
    return false;
}

bool steps_without_gradient(const Case& c) {
    bool any = false;
    for (const Action& action : c.program) {
        if (action.kind == ActionKind::micro_step) any = true;
        if (action.kind == ActionKind::step && !any) return true;
        if (action.kind == ActionKind::step || action.kind == ActionKind::zero_grad) any = false;
    }
    return false;
}

}  // namespace

std::string set_up_in_words(const Case& c) {
    std::vector<std::string> parts;
    std::string where = fmt::format("stage {} on {}, {}", c.stage,
                                    counted(static_cast<std::size_t>(c.ranks), "rank"),
                                    suites::name_of(c.precision));
    if (c.micro_steps > 1) where += fmt::format(", GA {}", c.micro_steps);
    parts.push_back(std::move(where));
    std::vector<std::string> parameters;
    for (std::size_t p = 0; p < c.parameters.size(); ++p)
        parameters.push_back(parameter_in_words(c, p));
    parts.push_back(fmt::format("{}", fmt::join(parameters, ", ")));
    if (!is_one_a_parameter(c)) parts.push_back(units_in_words(c));
    for (std::size_t g = 0; g < c.groups.size(); ++g)
        if (const std::string text = group_in_words(c.groups[g]); !text.empty())
            parts.push_back(c.groups.size() > 1 ? fmt::format("group {}: {}", g, text) : text);
    if (c.bucket_elements != Case{}.bucket_elements)
        parts.push_back("buckets of " + counted(c.bucket_elements, "element"));
    if (c.clip_norm > 0) parts.push_back(fmt::format("clipped to {}", c.clip_norm));
    if (c.precision == suites::Precision::fp16)
        parts.push_back(fmt::format("loss scale {}, times {} after {}, hysteresis {}, minimum {}",
                                    c.loss_scale.initial, c.loss_scale.factor,
                                    c.loss_scale.growth_interval, c.loss_scale.hysteresis,
                                    c.loss_scale.minimum));
    if (!c.overlap) parts.push_back("no overlap");
    if (!c.prefetch) parts.push_back("no prefetch");
    if (c.gradients == suites::GradientKind::rounding) parts.push_back("gradients that round");
    if (c.model == suites::Model::echo) parts.push_back("weights echoed");
    if (c.surroundings == suites::Surroundings::hostile) parts.push_back("hostile surroundings");
    for (const auto& [name, value] : c.options)
        parts.push_back(fmt::format("{} = {}", name, value));
    for (const suites::Injection& i : c.injections)
        parts.push_back(fmt::format("{} in element {} of {} on rank {} in micro-step {}", i.value,
                                    i.element, c.parameters[i.parameter].name, i.rank,
                                    i.micro_step));
    return fmt::format("{}", fmt::join(parts, "; "));
}

std::string program_in_words(const Case& c) {
    std::vector<std::pair<std::string, std::size_t>> steps;
    for (std::size_t a = 0; a < c.program.size();) {
        const bool window = is_window(c, a);
        std::string text = window ? "window" : action_in_words(c, c.program[a]);
        a += window ? static_cast<std::size_t>(c.micro_steps) + 1 : 1;
        const bool repeats = !steps.empty() && steps.back().first == text &&
                             (text == "window" || text == "micro-step" || text == "step");
        if (repeats)
            ++steps.back().second;
        else
            steps.emplace_back(std::move(text), 1);
    }
    std::vector<std::string> words;
    for (const auto& [text, count] : steps) words.push_back(with_count(text, count));
    return words.empty() ? "nothing" : fmt::format("{}", fmt::join(words, ", "));
}

std::set<std::string> features_of(const Case& c) {
    std::set<std::string> features;
    const auto add = [&](const char* feature, bool there) {
        if (there) features.insert(feature);
    };
    const auto any_parameter = [&](auto has) {
        for (std::size_t p = 0; p < c.parameters.size(); ++p)
            if (has(p)) return true;
        return false;
    };
    const auto any_group = [&](auto has) { return std::ranges::any_of(c.groups, has); };
    add("several ranks", c.ranks > 1);
    add("several micro-steps", c.micro_steps > 1);
    add("several steps", std::ranges::count(c.program, ActionKind::step, &Action::kind) > 1);
    add("several parameters", c.parameters.size() > 1);
    add("fp16", c.precision == suites::Precision::fp16);
    add("bf16", c.precision == suites::Precision::bf16);
    add("gradients that round", c.gradients == suites::GradientKind::rounding);
    add("echo", c.model == suites::Model::echo);
    add("hostile surroundings", c.surroundings == suites::Surroundings::hostile);
    add("no overlap", !c.overlap);
    add("no prefetch", !c.prefetch);
    add("clipping", c.clip_norm > 0);
    add("several groups", c.groups.size() > 1);
    add("decoupled decay", any_group([](const auto& g) { return g.weight_decay != 0 && !g.l2; }));
    add("L2 decay", any_group([](const auto& g) { return g.weight_decay != 0 && g.l2; }));
    add("tied", any_parameter([&](std::size_t p) { return suites::uses_of(c, p) > 1; }));
    add("in no unit", any_parameter([&](std::size_t p) { return suites::uses_of(c, p) == 0; }));
    add("unused",
        any_parameter(
            [&](std::size_t p) { return c.parameters[p].usage != suites::Usage::always; }) ||
            std::ranges::any_of(c.program, [](const Action& a) { return !a.unused.empty(); }));
    add("frozen", any_parameter([&](std::size_t p) { return !c.parameters[p].trainable; }));
    add("empty tensor",
        any_parameter([&](std::size_t p) { return c.parameters[p].elements() == 0; }));
    add("small buckets", c.bucket_elements < c.trainable_elements());
    add("gradients not finite", !c.injections.empty());
    add("on other ranks", c.resume_ranks > 0 && c.resume_ranks != c.ranks);
    add("in another stage", c.resume_stage >= 0 && c.resume_stage != c.stage);
    add("discard", discards(c));
    add("step without gradient", steps_without_gradient(c));
    for (const Action& action : c.program)
        if (action.kind != ActionKind::micro_step && action.kind != ActionKind::step)
            features.emplace(suites::name_of(action.kind));
    for (const auto& [name, value] : c.options) features.insert(name + " = " + value);
    return features;
}

}  // namespace zeroproof::harness
