// docs/train.schema.json says what is written and demanded here.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "collectives/communicator.h"
#include "collectives/record.h"
#include "harness/protocol/schema_check.h"
#include "harness/train/run_training.h"
#include "harness/train/train_json.h"
#include "harness/train/train_json_read.h"
#include "memory/ledger.h"

namespace zeroproof::harness {
namespace {

using scenarios::Json;

constexpr std::int64_t kSteps = 3;

// Of 3 steps of the smallest model on 2 ranks.
TrainRecord trained() {
    TrainRecord record;
    record.zeroproof_version = "1.2.3";
    record.command = "zeroproof train";
    record.started = "2026-01-01T00:00:00Z";
    record.data = std::string(text_files().front().name);
    record.plan.model = scenarios::load_transformer_model("gpt2-tiny");
    record.plan.stage = 3;
    record.plan.ranks = 2;
    record.plan.samples = 1;
    record.plan.steps = kSteps;
    const TextData data(std::string(text_files().front().text), record.data,
                        record.plan.model.sequence);
    run_training(data, {}, record);
    return record;
}

const TrainRecord& record_of_run() {
    static const TrainRecord record = trained();
    return record;
}
Json json_of_run() {
    return Json::parse(train_json(record_of_run()));
}

// Why it is not read; empty if it is.
std::string refusal(const Json& json) {
    try {
        read_train_json(json, "r.json");
    } catch (const scenarios::BadInput& error) {
        return error.what();
    }
    return "";
}

TEST(TrainSchema, AcceptsWhatIsWritten) {
    const Schema schema("train.schema.json");
    TrainRecord record = record_of_run();
    ASSERT_TRUE(record.complete) << record.ended_by;
    EXPECT_TRUE(schema.accepts(Json::parse(train_json(record))));
    record.steps.front().loss = std::nan("");
    record.steps.front().norm = HUGE_VAL;
    record.plan.capacity_bytes = 1'000'000;
    record.plan.seed = ~std::uint64_t{0};
    EXPECT_TRUE(schema.accepts(Json::parse(train_json(record))));
    EXPECT_EQ(refusal(Json::parse(train_json(record))), "");
    record.by_rank.clear();
    record.traffic.clear();
    record.steps.clear();
    record.complete = false;
    record.ended_by = "a device is too small";
    EXPECT_TRUE(schema.accepts(Json::parse(train_json(record))));
    EXPECT_EQ(refusal(Json::parse(train_json(record))), "");
}

TEST(TrainSchema, WhatIsReadIsWrittenAgain) {
    const std::string text = train_json(record_of_run());
    EXPECT_EQ(train_json(read_train_json(Json::parse(text), "r.json")), text);
}

TEST(TrainSchema, DemandsAndKnowsTheKeysThatAreDemandedAndRead) {
    const Schema schema("train.schema.json");
    const Json good = json_of_run();
    const struct {
        const char* definition;  // empty is the document itself
        const char* place;       // of one in the record
    } rows[] = {
        {"", ""},
        {"/$defs/plan", "/plan"},
        {"/$defs/model", "/plan/model"},
        {"/$defs/predicted", "/predicted"},
        {"/$defs/by_category", "/predicted/at_rest_bytes"},
        {"/$defs/rank", "/by_rank/1"},
        {"/$defs/by_category", "/by_rank/1/at_rest_bytes"},
        {"/$defs/by_category", "/by_rank/1/peak_bytes_by_category/backward"},
        {"/$defs/traffic_row", "/traffic/0"},
        {"/$defs/step", "/steps/1"},
        {"/$defs/timeline", "/timeline"},
    };
    for (const auto& [definition, place] : rows) {
        const Json& described = schema.root().at(Json::json_pointer(definition));
        EXPECT_EQ(described.at("additionalProperties"), false) << definition;
        EXPECT_EQ(keys_of(described.at("properties")), keys_of(good.at(Json::json_pointer(place))))
            << definition;
        for (const std::string& key : keys_of(described.at("properties"))) {
            Json less = good;
            less[Json::json_pointer(place)].erase(key);
            EXPECT_EQ(schema.accepts(less), refusal(less).empty()) << place << "/" << key;
        }
        Json more = good;
        more[Json::json_pointer(place)]["colour"] = 1;
        EXPECT_FALSE(schema.accepts(more)) << place;
        EXPECT_NE(refusal(more), "") << place;
    }
}

TEST(TrainSchema, BoundsAreThoseOfTheReader) {
    const Schema schema("train.schema.json");
    const Json good = json_of_run();
    const struct {
        const char* place;
        Json value;
    } rows[] = {
        {"/version", 2},
        {"/parameters", 0},
        {"/plan", Json::array()},
        {"/plan/stage", 4},
        {"/plan/ranks", 0},
        {"/plan/precision", "fp64"},
        {"/plan/model/name", ""},
        {"/plan/model/family", "gpt3"},
        {"/plan/model/hidden", 1.5},
        {"/plan/seed", -1},
        {"/plan/capacity_bytes", 0},
        {"/predicted/peak_bytes/forward", 0},
        {"/predicted/at_rest_bytes/buffer", -1},
        {"/by_rank", Json::object()},
        {"/by_rank/0/peak_bytes/lunch", 1},
        {"/traffic/0/traffic", "road"},
        {"/traffic/0/operations", 0},
        {"/steps/0/seconds", 0},
        {"/steps/0/loss", "low"},
        {"/timeline/phase/0", "lunch"},
        {"/timeline/buffer/0", (std::int64_t{1} << 53) + 1},
    };
    for (const auto& [place, value] : rows) {
        Json bad = good;
        bad[Json::json_pointer(place)] = value;
        EXPECT_FALSE(schema.accepts(bad)) << place << " " << value;
        EXPECT_NE(refusal(bad), "") << place << " " << value;
    }
}

// What no schema says.
TEST(TrainSchema, TheReaderSaysWhatDoesNotFitTogether) {
    const auto refusal_of = [](const auto& change) {
        Json json = json_of_run();
        change(json);
        return refusal(json);
    };
    const auto expect = [&](const char* message, const auto& change) {
        const std::string said = refusal_of(change);
        EXPECT_TRUE(said.starts_with("r.json: /")) << said;
        EXPECT_NE(said.find(message), std::string::npos) << said;
    };
    expect("this is no record of `zeroproof train`", [](Json& json) { json.erase("format"); });
    expect("/version: this program reads version 1", [](Json& json) { json["version"] = 7; });
    expect("/timeline/phase", [](Json& json) { json["timeline"]["phase"].erase(0); });
    expect("/timeline/buffer", [](Json& json) { json["timeline"]["buffer"].push_back(0); });
    expect("/timeline/seconds/1: is before",
           [](Json& json) { json["timeline"]["seconds"][1] = 0.0; });
    expect("/by_rank: 1 entries, of 2 ranks", [](Json& json) { json["by_rank"].erase(1); });
    expect("/by_rank: has entries, or none", [](Json& json) { json["by_rank"].clear(); });
    expect("/by_rank: has entries, or none", [](Json& json) {
        json["complete"] = false;
        json["ended_by"] = "boredom";
    });
    expect("/by_rank/1/rank", [](Json& json) { json["by_rank"][1]["rank"] = 0; });
    expect("does not have the phases of /peak_bytes",
           [](Json& json) { json["by_rank"][0]["peak_bytes"].erase("forward"); });
    expect("/predicted/peak_bytes: has no phase",
           [](Json& json) { json["predicted"]["peak_bytes"] = Json::object(); });
    expect("/traffic/1: stands twice",
           [](Json& json) { json["traffic"].insert(json["traffic"].begin(), json["traffic"][0]); });
    expect("/steps/1/step: expected 2", [](Json& json) { json["steps"][1]["step"] = 3; });
    expect("end with 2 of 3", [](Json& json) { json["steps"].erase(2); });
    expect("says why", [](Json& json) { json["complete"] = false; });
    expect("says why", [](Json& json) { json["ended_by"] = "boredom"; });
}

TEST(TrainSchema, ListsTheNamesThatAreRead) {
    const Schema schema("train.schema.json");
    const Json& defs = schema.root().at("$defs");
    const auto listed = [&](const char* place) {
        return texts_of(defs.at(Json::json_pointer(place)).at("enum"));
    };
    const auto keys = [&](const char* definition) {
        return keys_of(defs.at(definition).at("properties"));
    };
    const std::set<std::string> categories = names<memory::Category>(memory::kCategories);
    const std::set<std::string> phases = names<memory::Phase>(memory::kPhases);
    EXPECT_EQ(listed("/phase"), phases);
    EXPECT_EQ(keys("by_phase"), phases);
    EXPECT_EQ(keys("by_phase_and_category"), phases);
    EXPECT_EQ(keys("by_category"), categories);
    std::set<std::string> columns = keys("timeline");
    EXPECT_EQ(columns.erase("seconds") + columns.erase("phase"), 2u);
    EXPECT_EQ(columns, categories);
    EXPECT_EQ(listed("/traffic_row/properties/traffic"),
              names<collectives::Traffic>(collectives::kTraffics));
    EXPECT_EQ(listed("/traffic_row/properties/op"), names<collectives::Op>(8));
    EXPECT_EQ(listed("/model/properties/family"),
              names<scenarios::TransformerFamily>(scenarios::kTransformerFamilies));
}

}  // namespace
}  // namespace zeroproof::harness
