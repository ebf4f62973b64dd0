#include "suites/conformance/case_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace zeroproof::suites {

namespace {

constexpr std::string_view kUsages[] = {"always", "even_ranks", "odd_micro_steps", "alternating",
                                        "never"};

scenarios::Json parameter_to_json(const ParameterCase& parameter) {
    scenarios::Json json{{"name", parameter.name},
                         {"shape", parameter.shape},
                         {"group", parameter.group},
                         {"trainable", parameter.trainable},
                         {"usage", kUsages[static_cast<std::size_t>(parameter.usage)]},
                         {"gradient_exponent", parameter.gradient_exponent}};
    return json;
}

// How the units came about, which their names tell: by default one a parameter, in the order of the
// parameters before they were reversed.
enum class Units { by_parameter, by_parameter_reversed, one, listed };

Units kind_of_units(const Case& c) {
    if (c.units.size() == 1 && c.units[0].name == "all") return Units::one;
    const auto is_default = [&](auto parameter_of) {
        if (c.units.size() != c.parameters.size()) return false;
        for (std::size_t u = 0; u < c.units.size(); ++u) {
            const std::size_t p = parameter_of(u);
            if (c.units[u].parameters != std::vector{p} ||
                c.units[u].name != "unit " + c.parameters[p].name)
                return false;
        }
        return true;
    };
    if (is_default([](std::size_t u) { return u; })) return Units::by_parameter;
    if (is_default([&](std::size_t u) { return c.units.size() - 1 - u; }))
        return Units::by_parameter_reversed;
    return Units::listed;
}

scenarios::Json units_to_json(const Case& c) {
    scenarios::Json units = scenarios::Json::array();
    for (const UnitCase& unit : c.units) {
        scenarios::Json names = scenarios::Json::array();
        for (const std::size_t p : unit.parameters) names.push_back(c.parameters[p].name);
        units.push_back(std::move(names));
    }
    return units;
}

scenarios::Json group_to_json(const GroupCase& group) {
    return {{"learning_rate", group.learning_rate},
            {"beta1", group.beta1},
            {"beta2", group.beta2},
            {"epsilon", group.epsilon},
            {"weight_decay", group.weight_decay},
            {"decay", group.l2 ? "l2" : "decoupled"}};
}

scenarios::Json action_to_json(const Action& action, const Case& c) {
    scenarios::Json json{{"action", name_of(action.kind)}};
    switch (action.kind) {
        case ActionKind::micro_step:
            for (const Unused& unused : action.unused)
                json["unused"].push_back(
                    {{"parameter", c.parameters[unused.parameter].name}, {"rank", unused.rank}});
            break;
        case ActionKind::zero_grad:
            if (action.by_model) json["by"] = "model";
            break;
        case ActionKind::rate:
            json["group"] = action.group;
            json["learning_rate"] = action.value;
            break;
        case ActionKind::add_group: json["group"] = action.group; break;
        case ActionKind::clip: json["norm"] = action.value; break;
        case ActionKind::scale_gradient:
        case ActionKind::scale_weight:
            json["parameter"] = c.parameters[action.parameter].name;
            json["factor"] = action.value;
            break;
        case ActionKind::freeze:
        case ActionKind::unfreeze: json["parameter"] = c.parameters[action.parameter].name; break;
        case ActionKind::step:
        case ActionKind::evaluate:
        case ActionKind::reload:
        case ActionKind::read:
        case ActionKind::save:
        case ActionKind::load: break;
    }
    if (json.size() == 1) return json.front();
    return json;
}

scenarios::Json transport_to_json(const TransportCase& transport) {
    return {{"type", memory::name_of(transport.type)},
            {"count", transport.count},
            {"misalignment_bytes", transport.misalignment_bytes},
            {"in_place", transport.in_place}};
}

void transformer_to_json(const TransformerCase& t, scenarios::Json& json) {
    json["transformer"] = scenarios::sizes_of(t.model);
    json["samples"] = t.samples;
    json["tensor_parallel"] = t.tensor_parallel;
    json["blocks_per_checkpoint"] = t.blocks_per_checkpoint;
    json["checkpoints"] = t.partition_checkpoints
                              ? (t.offload_checkpoints ? "partitioned on host" : "partitioned")
                              : (t.offload_checkpoints ? "host" : "whole");
    json["contiguous_checkpoints"] = t.contiguous_checkpoints;
}

}  // namespace

scenarios::Json number_to_json(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    return value;
}

scenarios::Json case_to_json(const Case& c) {
    scenarios::Json json{{"family", c.family},
                         {"purpose", fmt::format("One case of the family {}.", c.family)},
                         {"id", c.id}};
    if (c.transport) {
        json["ranks"] = c.ranks;
        json["seed"] = c.seed;
        json["transport"] = transport_to_json(*c.transport);
        return json;
    }
    json["stage"] = c.stage;
    json["ranks"] = c.ranks;
    json["precision"] = name_of(c.precision);
    json["micro_steps"] = c.micro_steps;
    const Units units = kind_of_units(c);
    const bool reversed = units == Units::by_parameter_reversed;
    json["parameters"] = scenarios::Json::array();
    for (std::size_t p = 0; p < c.parameters.size(); ++p)
        json["parameters"].push_back(
            parameter_to_json(c.parameters[reversed ? c.parameters.size() - 1 - p : p]));
    if (units == Units::one || units == Units::listed) json["units"] = units_to_json(c);
    json["one_unit"] = units == Units::one;
    json["reverse_parameters"] = reversed;
    if (c.transformer) {
        for (const char* given : {"parameters", "units", "one_unit", "reverse_parameters"})
            json.erase(given);
        transformer_to_json(*c.transformer, json);
    }
    json["groups"] = scenarios::Json::array();
    for (const GroupCase& group : c.groups) json["groups"].push_back(group_to_json(group));
    json["bucket_elements"] = c.bucket_elements;
    json["overlap"] = c.overlap;
    json["prefetch"] = c.prefetch;
    json["clip_norm"] = c.clip_norm;
    json["loss_scale"] = {{"initial", c.loss_scale.initial},
                          {"factor", c.loss_scale.factor},
                          {"growth_interval", c.loss_scale.growth_interval},
                          {"hysteresis", c.loss_scale.hysteresis},
                          {"minimum", c.loss_scale.minimum}};
    if (!c.transformer) json["features"] = c.features;
    json["options"] = scenarios::Json::object();
    for (const auto& [name, text] : c.options)
        json["options"][name] = scenarios::parse_json(text, "option " + name);
    if (!c.transformer) {
        json["model"] = c.model == Model::echo ? "echo" : "dot";
        json["gradients"] = c.gradients == GradientKind::rounding ? "rounding" : "exact";
    }
    json["surroundings"] = c.surroundings == Surroundings::hostile ? "hostile" : "plain";
    json["program"] = scenarios::Json::array();
    for (const Action& action : c.program) json["program"].push_back(action_to_json(action, c));
    if (!c.transformer) json["inject"] = scenarios::Json::array();
    for (const Injection& injection : c.injections)
        json["inject"].push_back({{"micro_step", injection.micro_step},
                                  {"rank", injection.rank},
                                  {"parameter", c.parameters[injection.parameter].name},
                                  {"element", injection.element},
                                  {"value", number_to_json(injection.value)}});
    json["resume_ranks"] = c.resume_ranks;
    json["resume_stage"] = c.resume_stage;
    json["seed"] = c.seed;
    json["measured"] = c.measured;
    return json;
}

}  // namespace zeroproof::suites
