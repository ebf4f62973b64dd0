#include "harness/protocol/case_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "harness/protocol/safetensors.h"
#include "harness/protocol/whole_file.h"
#include "suites/conformance/case_writer.h"
#include "suites/conformance/family.h"
#include "suites/conformance/gradients.h"

namespace zeroproof::harness {

namespace {

namespace fs = std::filesystem;
using scenarios::Json;
using scenarios::JsonReader;
using suites::ActionKind;
using suites::Case;

constexpr int kMostIndex = 9999;  // in four digits

std::string tensors_of(const PartOfCase& part) {
    return folder_of(part) + ".safetensors";
}

std::size_t micro_steps_in(const Case& c, std::size_t begin, std::size_t end) {
    const auto at = [&](std::size_t a) {
        return c.program.begin() + static_cast<std::ptrdiff_t>(a);
    };
    return static_cast<std::size_t>(std::count_if(
        at(begin), at(end),
        [](const suites::Action& action) { return action.kind == ActionKind::micro_step; }));
}

Json parameters_to_json(const Case& c) {
    Json parameters = Json::array();
    for (const suites::ParameterCase& p : c.parameters)
        parameters.push_back(
            {{"name", p.name}, {"shape", p.shape}, {"group", p.group}, {"trainable", p.trainable}});
    return parameters;
}

// The actions of the part. The keys of most kinds are those that the definition of the case has.
Json actions_to_json(const PartOfCase& part, const Json& definition) {
    const Case& c = *part.c;
    Json actions = Json::array();
    std::size_t micro_step = 0;
    int in_window = 0;
    for (std::size_t a = 0; a < part.part.end; ++a) {
        const suites::Action& action = c.program[a];
        Json json{{"index", a}, {"action", name_of(action.kind)}};
        switch (action.kind) {
            case ActionKind::micro_step:
                json["micro_step"] = micro_step++;
                json["synchronise"] = ++in_window == c.micro_steps;
                break;
            case ActionKind::step: in_window = 0; break;
            case ActionKind::zero_grad:
                in_window = 0;
                json["by"] = action.by_model ? "model" : "optimizer";
                break;
            default:
                if (const Json& written = definition.at("program").at(a); written.is_object())
                    for (const auto& [key, value] : written.items()) json[key] = value;
        }
        if (a >= part.part.begin) actions.push_back(std::move(json));
    }
    return actions;
}

Json path_to_json(const fs::path& path) {
    return path.empty() ? Json(nullptr) : Json(path.string());
}

Json part_to_json(const PartOfCase& part) {
    const Case& c = *part.c;
    Json definition = case_to_json(c);
    Json json;
    json["index"] = part.index;
    json["id"] = c.id;
    json["tensors"] = tensors_of(part);
    json["stage"] = part.part.stage;
    json["precision"] = name_of(c.precision);
    json["micro_steps"] = c.micro_steps;
    json["parameters"] = parameters_to_json(c);
    json["units"] = Json::array();
    for (const suites::UnitCase& unit : c.units) {
        Json names = Json::array();
        for (const std::size_t p : unit.parameters) names.push_back(c.parameters[p].name);
        json["units"].push_back(std::move(names));
    }
    for (const char* key : {"groups", "bucket_elements", "overlap", "prefetch", "clip_norm",
                            "loss_scale", "model", "surroundings", "features", "options"})
        json[key] = definition.at(key);
    json["first_micro_step"] = micro_steps_in(c, 0, part.part.begin);
    json["save_to"] = path_to_json(part.part.save_to);
    json["load_from"] = path_to_json(part.part.load_from);
    json["actions"] = actions_to_json(part, definition);
    json["definition"] = std::move(definition);
    return json;
}

std::vector<float> initial_weights(const Case& c, std::size_t parameter) {
    std::vector<float> values(c.parameters[parameter].elements());
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(suites::Gradients::initial_weight(c, parameter, i));
    return values;
}

// Tensors are written as they are made: those of a long program on many ranks are large.
void write_tensors(const fs::path& path, const PartOfCase& part) {
    const Case& c = *part.c;
    const suites::Gradients gradients(c, part.part.ranks);
    const std::size_t first = micro_steps_in(c, 0, part.part.begin);
    const std::size_t count = micro_steps_in(c, part.part.begin, part.part.end);
    const auto ranks = static_cast<std::size_t>(part.part.ranks);
    const auto each = [&](const auto& visit) {
        for (std::size_t k = first; k < first + count; ++k)
            for (int rank = 0; rank < part.part.ranks; ++rank) visit(k, rank);
    };
    SafetensorsWriter writer;
    for (std::size_t p = 0; p < c.parameters.size(); ++p) {
        const suites::ParameterCase& parameter = c.parameters[p];
        const std::size_t uses = uses_of(c, p);
        writer.add("initial/" + parameter.name, parameter.shape,
                   [&c, p](const auto& append) { append(initial_weights(c, p)); });
        writer.add("gradient/" + parameter.name, {count, ranks, uses, parameter.elements()},
                   [&, p, uses](const auto& append) {
                       std::vector<float> values(c.parameters[p].elements());
                       each([&](std::size_t micro_step, int rank) {
                           for (std::size_t use = 0; use < uses; ++use) {
                               gradients.fill({rank, micro_step, use}, p, values);
                               append(values);
                           }
                       });
                   });
        writer.add("used/" + parameter.name, {count, ranks}, [&, p](const auto& append) {
            std::vector<float> values;
            each([&](std::size_t micro_step, int rank) {
                values.push_back(gradients.is_used(p, rank, micro_step) ? 1.0f : 0.0f);
            });
            append(values);
        });
    }
    writer.write(path);
}

fs::path read_path(const JsonReader& path) {
    return path.json().is_null() ? fs::path() : fs::path(path.text());
}

}  // namespace

std::string folder_of(const PartOfCase& part) {
    return fmt::format("{:04}", part.index);
}

void write_cases(const fs::path& folder, int ranks, std::span<const PartOfCase> parts) {
    // A document of them all in memory would be many times as large as its text.
    WholeFile file(folder / "cases.json");
    file.write(
        fmt::format("{{\"schema\": \"{}\", \"ranks\": {}, \"cases\": [", kCasesSchema, ranks));
    for (const PartOfCase& part : parts) {
        if (part.index > kMostIndex || part.part.ranks != ranks)
            throw std::logic_error("a part that does not belong into this launch");
        write_tensors(folder / tensors_of(part), part);
        file.write(&part == &parts.front() ? "\n" : ",\n");
        file.write(part_to_json(part).dump(-1, ' ', false, Json::error_handler_t::replace));
    }
    file.write("\n]}\n");
    file.finish();
}

CaseDocument read_cases(const fs::path& folder) {
    const std::string file = (folder / "cases.json").string();
    const Json json = scenarios::parse_json(scenarios::read_text_file(file), file);
    const JsonReader reader(json, file);
    reader.allow({"schema", "ranks", "cases"});
    if (const std::string schema = reader.at("schema").text(); schema != kCasesSchema)
        reader.at("schema").fail(fmt::format("\"{}\" where \"{}\" is known", schema, kCasesSchema));
    CaseDocument document;
    document.ranks = static_cast<int>(reader.at("ranks").integer(1, 64));
    std::vector<JsonReader> items = reader.at("cases").items();
    document.cases.reserve(items.size());  // the parts point to them
    for (const JsonReader& item : items) {
        std::vector<Case> family = suites::read_family(
            item.at("definition").json().dump(), fmt::format("{}: {}", file, item.at("id").text()));
        if (family.size() != 1) item.at("definition").fail("expected one case");
        document.cases.push_back(std::move(family.front()));
        PartOfCase& part = document.parts.emplace_back();
        part.c = &document.cases.back();
        part.index = static_cast<std::size_t>(item.at("index").integer(0, kMostIndex));
        part.part.ranks = document.ranks;
        part.part.stage = static_cast<int>(item.at("stage").integer(0, 3));
        part.part.save_to = read_path(item.at("save_to"));
        part.part.load_from = read_path(item.at("load_from"));
        const std::vector<JsonReader> actions = item.at("actions").items();
        const auto last = static_cast<std::int64_t>(part.c->program.size()) - 1;
        if (actions.empty()) continue;  // a part before a reload that is the first action
        part.part.begin = static_cast<std::size_t>(actions.front().at("index").integer(0, last));
        part.part.end = part.part.begin + actions.size();
        if (part.part.end > part.c->program.size())
            item.at("actions").fail("more than the program has");
    }
    return document;
}

}  // namespace zeroproof::harness
