#include "suites/conformance/declaration_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "scenarios/json_reader.h"
#include "suites/conformance/clause.h"

namespace zeroproof::suites {

namespace {

int stage_named(const scenarios::JsonReader& place, const std::string& key) {
    if (key.size() != 1 || key[0] < '0' || key[0] > '3')
        place.fail(fmt::format("\"{}\" is no stage", key));
    return key[0] - '0';
}

Precision precision_named(const scenarios::JsonReader& place, const std::string& key) {
    for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16})
        if (name_of(precision) == key) return precision;
    place.fail(fmt::format("\"{}\" is no precision", key));
}

memory::DType read_type(const scenarios::JsonReader& name) {
    try {
        return memory::dtype_from_name(name.text());
    } catch (const std::invalid_argument& error) {
        name.fail(error.what());
    }
}

const scenarios::Json& object_of(const scenarios::JsonReader& reader) {
    if (!reader.json().is_object()) reader.fail("expected an object");
    return reader.json();
}

Padded read_padded(const scenarios::JsonReader& object) {
    Padded padded;
    if (object.has("padding"))
        padded.padding = static_cast<Padding>(object.at("padding").choice(
            {"none", "rows", "parameter", "unit", "group", "owned", "buckets"}));
    if (object.has("alignment"))
        padded.alignment = static_cast<std::size_t>(object.at("alignment").integer(1, 1 << 20));
    return padded;
}

std::vector<DeclaredTraffic> read_traffic(const scenarios::JsonReader& list) {
    std::vector<DeclaredTraffic> traffic;
    for (const scenarios::JsonReader& item : list.items()) {
        item.allow({"operation", "phase", "every", "padding", "alignment", "times", "per_use"});
        DeclaredTraffic one{scenarios::read_named<collectives::Op>(item.at("operation"), 8),
                            scenarios::read_named<memory::Phase>(item.at("phase"), memory::kPhases),
                            item.at("every").choice({"micro_step", "window"}) == 0,
                            read_padded(item)};
        if (item.has("times")) one.times = item.at("times").number();
        if (item.has("per_use")) one.per_use = item.at("per_use").boolean();
        if (one.padded.padding == Padding::owned)
            item.at("padding").fail("is for bytes: what travels has another");
        traffic.push_back(one);
    }
    return traffic;
}

DeclaredStage read_stage(const scenarios::JsonReader& object) {
    object.allow({"why", "gradient", "parameter", "gradient_type", "bytes"});
    DeclaredStage stage;
    stage.why = object.at("why").text();
    if (stage.why.empty()) object.at("why").fail("a deviation needs its reason");
    stage.gradient = read_traffic(object.at("gradient"));
    stage.parameter = read_traffic(object.at("parameter"));
    if (object.has("gradient_type")) {
        const scenarios::JsonReader types = object.at("gradient_type");
        for (const auto& [precision, unused] : object_of(types).items())
            stage.gradient_type[precision_named(types, precision)] = read_type(types.at(precision));
    }
    if (!object.has("bytes")) return stage;
    const scenarios::JsonReader bytes = object.at("bytes");
    for (const auto& [precision, unused] : object_of(bytes).items()) {
        const scenarios::JsonReader categories = bytes.at(precision);
        for (const auto& [name, unused_too] : object_of(categories).items()) {
            const scenarios::JsonReader item = categories.at(name);
            item.allow({"bytes", "sharded", "padding", "alignment"});
            const scenarios::Json name_json = name;
            const auto category = scenarios::read_named<memory::Category>(
                scenarios::JsonReader(name_json, "a category of bytes"), memory::kCategories);
            stage.bytes[precision_named(bytes, precision)][category] = {
                static_cast<std::size_t>(item.at("bytes").integer(0, 64)),
                item.at("sharded").boolean(), read_padded(item)};
        }
    }
    return stage;
}

Option read_option(const scenarios::JsonReader& object) {
    object.allow({"values", "stages"});
    Option option;
    for (const scenarios::JsonReader& value : object.at("values").items())
        option.values.push_back(value.json().dump());
    if (option.values.size() < 2) object.at("values").fail("expected a default and another value");
    for (const scenarios::JsonReader& stage : object.at("stages").items())
        option.stages.insert(static_cast<int>(stage.integer(0, 3)));
    return option;
}

}  // namespace

Declaration read_declaration(std::string_view text, const std::string& file) {
    const scenarios::Json document = scenarios::parse_json(text, file);
    const scenarios::JsonReader reader(document, file);
    reader.allow({"subject", "version", "sources", "stages", "precisions", "features", "actions",
                  "most_ranks", "norm_accumulation", "control_elements_per_step", "buckets",
                  "without_gradient", "clip_epsilon", "lazy_states", "skips_non_finite",
                  "deviating", "not_promised", "options"});
    Declaration declaration;
    declaration.name = reader.at("subject").text();
    declaration.most_ranks = 4;
    if (reader.has("version")) declaration.version = reader.at("version").text();
    for (const scenarios::JsonReader& stage : reader.at("stages").items())
        declaration.stages.insert(static_cast<int>(stage.integer(0, 3)));
    for (const scenarios::JsonReader& precision : reader.at("precisions").items())
        declaration.precisions.insert(precision_named(precision, precision.text()));
    if (reader.has("features"))
        for (const scenarios::JsonReader& feature : reader.at("features").items())
            declaration.features.insert(feature.text());
    declaration.actions = common_actions();
    if (reader.has("actions")) {
        declaration.actions.clear();
        for (const scenarios::JsonReader& action : reader.at("actions").items())
            declaration.actions.insert(scenarios::read_named<ActionKind>(action, kActionKinds));
    }
    if (reader.has("most_ranks"))
        declaration.most_ranks = static_cast<int>(reader.at("most_ranks").integer(1, 64));
    if (reader.has("norm_accumulation"))
        declaration.norm_accumulation = read_type(reader.at("norm_accumulation"));
    if (reader.has("control_elements_per_step"))
        declaration.control_elements_per_step =
            static_cast<std::size_t>(reader.at("control_elements_per_step").integer(0, 1 << 20));
    if (reader.has("buckets")) declaration.buckets = reader.at("buckets").boolean();
    if (reader.has("without_gradient"))
        declaration.meanings.without_gradient = static_cast<Meanings::WithoutGradient>(
            reader.at("without_gradient").choice({"zero", "skip"}));
    if (reader.has("clip_epsilon"))
        declaration.meanings.clip_epsilon = reader.at("clip_epsilon").number();
    if (reader.has("lazy_states")) declaration.lazy_states = reader.at("lazy_states").boolean();
    if (reader.has("skips_non_finite"))
        declaration.skips_non_finite = reader.at("skips_non_finite").boolean();
    if (reader.has("deviating")) {
        const scenarios::JsonReader stages = reader.at("deviating");
        for (const auto& [stage, unused] : object_of(stages).items())
            declaration.deviating[stage_named(stages, stage)] = read_stage(stages.at(stage));
    }
    if (reader.has("not_promised")) {
        const scenarios::JsonReader clauses = reader.at("not_promised");
        for (const auto& [clause, unused] : object_of(clauses).items()) {
            const std::string why = clauses.at(clause).text();
            if (find_clause(clause) == nullptr)
                clauses.at(clause).fail(fmt::format("no clause is named \"{}\"", clause));
            if (why.empty()) clauses.at(clause).fail("expected a reason");
            declaration.not_promised[clause] = why;
        }
    }
    if (reader.has("options")) {
        const scenarios::JsonReader options = reader.at("options");
        for (const auto& [name, unused] : object_of(options).items())
            declaration.options[name] = read_option(options.at(name));
    }
    return declaration;
}

}  // namespace zeroproof::suites
