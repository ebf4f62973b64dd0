#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "harness/plugin/library.h"
#include "scenarios/json_reader.h"
#include "suites/conformance/declaration_reader.h"

namespace zeroproof::harness {

namespace {

using scenarios::Json;
using suites::ActionKind;
using suites::Observation;
using suites::Precision;

std::string text_of(const char* text) {
    return text == nullptr ? "" : text;
}

Json actions_of(const zeroproof_engine& engine) {
    Json actions = Json::array();
    const auto add = [&](bool is_there, std::initializer_list<ActionKind> kinds) {
        for (const ActionKind kind : kinds)
            if (is_there) actions.push_back(name_of(kind));
    };
    add(true, {ActionKind::micro_step, ActionKind::step, ActionKind::read});
    add(engine.zero_grad != nullptr, {ActionKind::zero_grad});
    add(engine.evaluate != nullptr, {ActionKind::evaluate});
    add(engine.save != nullptr && engine.load != nullptr,
        {ActionKind::save, ActionKind::load, ActionKind::reload});
    add(engine.set_learning_rate != nullptr, {ActionKind::rate});
    add(engine.clip != nullptr, {ActionKind::clip});
    add(engine.scale_gradient != nullptr, {ActionKind::scale_gradient});
    add(engine.scale_weight != nullptr, {ActionKind::scale_weight});
    add(engine.set_trainable != nullptr, {ActionKind::freeze, ActionKind::unfreeze});
    add(engine.add_group != nullptr, {ActionKind::add_group});
    return actions;
}

Json declaration_of(const zeroproof_engine& engine, const zeroproof_description& said) {
    Json json{{"subject", text_of(said.name)},
              {"stages", Json::array()},
              {"precisions", Json::array()},
              {"features", Json::array()},
              {"actions", actions_of(engine)},
              {"most_ranks", said.most_ranks == 0 ? 64 : said.most_ranks},
              {"norm_accumulation", said.norm_in_fp64 != 0 ? "fp64" : "fp32"},
              {"buckets", said.promises_buckets != 0},
              {"without_gradient", said.skips_unused != 0 ? "skip" : "zero"},
              {"clip_epsilon", said.clip_epsilon},
              {"lazy_states", said.lazy_states != 0},
              {"skips_non_finite", said.steps_non_finite == 0}};
    if (said.version != nullptr) json["version"] = text_of(said.version);
    for (int stage = 0; stage < 32; ++stage)
        if ((said.stages >> stage & 1u) != 0) json["stages"].push_back(stage);
    const struct {
        int type;
        Precision precision;
    } precisions[] = {{ZEROPROOF_FP32, Precision::fp32},
                      {ZEROPROOF_BF16, Precision::bf16},
                      {ZEROPROOF_FP16, Precision::fp16}};
    for (const auto& [type, precision] : precisions)
        if ((said.precisions >> type & 1u) != 0) json["precisions"].push_back(name_of(precision));
    for (std::size_t i = 0; i < said.feature_count; ++i)
        json["features"].push_back(text_of(said.features[i]));
    if (said.promises_control != 0)
        json["control_elements_per_step"] = said.control_elements_per_step;
    if (said.further == nullptr) return json;
    const Json further = scenarios::parse_json(said.further, "zeroproof_description.further");
    if (!further.is_object())
        throw scenarios::BadInput("zeroproof_description.further: expected a JSON object");
    for (const auto& [key, value] : further.items()) {
        if (json.contains(key))
            throw scenarios::BadInput(
                fmt::format("zeroproof_description.further: \"{}\" has a field of its own", key));
        json[key] = value;
    }
    return json;
}

suites::Observations observed_of(const zeroproof_engine& engine,
                                 const zeroproof_description& said) {
    suites::Observations observed = suites::Observations::all();
    const auto remove = [&](bool is_hidden, std::initializer_list<Observation> what) {
        for (const Observation one : what)
            if (is_hidden) observed.remove(one);
    };
    const auto hides = [&](std::uint32_t bit) { return (said.hidden & bit) != 0; };
    remove(engine.slices == nullptr, {Observation::ownership});
    remove(
        engine.slices == nullptr || engine.read_slice == nullptr,
        {Observation::master, Observation::momentum, Observation::variance, Observation::gradient});
    remove(engine.read_weights == nullptr, {Observation::weights});
    remove(engine.progress == nullptr, {Observation::steps, Observation::loss_scale});
    remove(hides(ZEROPROOF_HIDES_GRADIENT), {Observation::gradient});
    remove(hides(ZEROPROOF_HIDES_MOMENTUM), {Observation::momentum});
    remove(hides(ZEROPROOF_HIDES_VARIANCE), {Observation::variance});
    remove(hides(ZEROPROOF_HIDES_MASTER), {Observation::master});
    remove(hides(ZEROPROOF_HIDES_NORM), {Observation::norm});
    remove(hides(ZEROPROOF_HIDES_CLIP), {Observation::clip_coefficient});
    remove(hides(ZEROPROOF_HIDES_BYTES), {Observation::live_bytes, Observation::peak_bytes});
    remove(hides(ZEROPROOF_HIDES_TRAFFIC),
           {Observation::collectives, Observation::in_flight, Observation::races});
    remove(hides(ZEROPROOF_HIDES_OWNERSHIP), {Observation::ownership});
    remove(hides(ZEROPROOF_HIDES_LOSS_SCALE), {Observation::loss_scale});
    return observed;
}

}  // namespace

PluginDescription describe(const zeroproof_engine& engine) {
    zeroproof_description said{};
    said.struct_size = sizeof said;
    if (const zeroproof_status status = engine.describe(&said); status != ZEROPROOF_OK)
        throw UnfitPlugin(
            fmt::format("its function describe returned {}: let it fill the "
                        "description and return ZEROPROOF_OK",
                        status));
    try {
        PluginDescription description;
        description.name = text_of(said.name);
        description.version = text_of(said.version);
        description.observed = observed_of(engine, said);
        description.declaration = declaration_of(engine, said).dump(1);
        if (description.name.empty()) throw scenarios::BadInput("there is no name");
        (void)suites::read_declaration(description.declaration, "the declaration");
        return description;
    } catch (const scenarios::BadInput& error) {
        throw UnfitPlugin(
            fmt::format("what its function describe says cannot be: {}", error.what()));
    } catch (const Json::exception&) {
        throw UnfitPlugin("what its function describe says cannot be: a text is not UTF-8");
    }
}

}  // namespace zeroproof::harness
