// The schemas in docs/ say what is written here and demanded here.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/protocol/evidence_document.h"
#include "harness/protocol/schema_check.h"
#include "harness/subjects/reference_subject.h"
#include "harness/temporary_folder.h"
#include "scenarios/json_reader.h"
#include "suites/conformance/family.h"

namespace zeroproof::harness {
namespace {

using scenarios::Json;
using suites::Case;

Json read_json(const std::filesystem::path& file) {
    return scenarios::parse_json(scenarios::read_text_file(file.string()), file.string());
}

class Schemas : public testing::Test {
  protected:
    Schemas() {
        case_ = suites::read_family(R"({
            "family": "f", "purpose": "p", "model": "echo", "surroundings": "hostile",
            "parameters": [{"name": "a", "shape": [2]}], "program": ["window"]})",
                                    "f.json")
                    .front();
        RankResult result;
        result.observed = suites::Observations::all();
        result.evidence = run_reference_part(case_, part_.part, std::chrono::seconds(60),
                                             result.status, result.message)
                              .at(0);
        result.evidence.races = {{collectives::RaceKind::not_awaited, "x", 0, 0}};
        write_evidence(folder_.path(), part_, 0, result);
        write_cases(folder_.path(), 1, std::span(&part_, 1));
        write_ready(folder_.path(), 0, {"s", "v"});
        evidence_ = read_json(evidence_file());
    }

    std::filesystem::path evidence_file() const { return folder_.path() / "0000" / "rank-0.json"; }
    static bool is_accepted(const std::function<void()>& read) {
        try {
            read();
        } catch (const scenarios::BadInput&) {
            return false;
        }
        return true;
    }

    TemporaryFolder folder_;
    Case case_;
    PartOfCase part_{&case_, {1, 0, 0, 2, {}, {}, {}}, 0};
    Json evidence_;
};

TEST_F(Schemas, OfEvidenceHaveTheKeysThatAreReadAndRequireThoseThatAreDemanded) {
    const Json document = schema_document("evidence.schema.json");
    const struct {
        const char* definition;  // empty is the document itself
        const char* place;       // of one in the evidence
    } rows[] = {
        {"", ""},
        {"/$defs/snapshot", "/snapshots/1"},
        {"/$defs/slice", "/snapshots/1/owned/0"},
        {"/$defs/snapshot/properties/live_bytes", "/snapshots/1/live_bytes"},
        {"/properties/peak_bytes", "/peak_bytes"},
        {"/$defs/echo", "/echoes/0"},
        {"/$defs/collective", "/collectives/0"},
        {"/$defs/in_flight", "/in_flight/0"},
        {"/$defs/race", "/races/0"},
    };
    SafetensorsWriter().write(folder_.path() / "0000" / "rank-0.safetensors");
    Json unobserved = evidence_;
    unobserved["observed"] = Json::array();
    for (const auto& [definition, place] : rows) {
        SCOPED_TRACE(definition);
        const Json& described = document.at(Json::json_pointer(definition));
        EXPECT_EQ(described.at("additionalProperties"), false);
        std::set<std::string> required = texts_of(described.at("required"));
        if (*definition == '\0') required.merge(texts_of(document.at("then").at("required")));
        const std::set<std::string> keys = keys_of(described.at("properties"));
        EXPECT_EQ(keys, keys_of(evidence_.at(Json::json_pointer(place))));
        for (const std::string& key : keys) {
            Json less = unobserved;
            less.at(Json::json_pointer(place)).erase(key);
            std::ofstream(evidence_file()) << less;
            EXPECT_EQ(is_accepted([&] { read_evidence(folder_.path(), part_, 0); }),
                      !required.contains(key))
                << key;
        }
    }
}

TEST_F(Schemas, RequireWhatIsObserved) {
    SafetensorsWriter().write(folder_.path() / "0000" / "rank-0.safetensors");
    const Json document = schema_document("evidence.schema.json");
    for (const Json& rule : document.at("then").at("allOf")) {
        const Json& observation =
            rule.at(Json::json_pointer("/if/properties/observed/contains/const"));
        for (const std::string& key : texts_of(rule.at("then").at("required")))
            for (const bool is_observed : {true, false}) {
                Json less = evidence_;
                less.erase(key);
                less["observed"] = Json::array();
                if (is_observed) less["observed"].push_back(observation);
                std::ofstream(evidence_file()) << less;
                EXPECT_NE(is_accepted([&] { read_evidence(folder_.path(), part_, 0); }),
                          is_observed)
                    << key;
            }
    }
}

TEST_F(Schemas, OfReadinessAndOfCasesHaveTheKeysThatAreWritten) {
    const Json ready = schema_document("evidence.schema.json").at("$defs").at("ready");
    const std::filesystem::path file = folder_.path() / "ready-0.json";
    const Json written = read_json(file);
    EXPECT_EQ(keys_of(ready.at("properties")), keys_of(written));
    for (const std::string& key : texts_of(ready.at("required"))) {
        Json less = written;
        less.erase(key);
        std::ofstream(file) << less;
        EXPECT_FALSE(is_accepted([&] { read_ready(folder_.path(), 0); })) << key;
    }

    const Json document = schema_document("cases.schema.json");
    const Json cases = read_json(folder_.path() / "cases.json");
    const struct {
        const char* definition;
        const char* place;
    } rows[] = {
        {"", ""},
        {"/$defs/case", "/cases/0"},
        {"/$defs/parameter", "/cases/0/parameters/0"},
        {"/$defs/group", "/cases/0/groups/0"},
        {"/$defs/loss_scale", "/cases/0/loss_scale"},
    };
    for (const auto& [definition, place] : rows) {
        SCOPED_TRACE(definition);
        const Json& described = document.at(Json::json_pointer(definition));
        EXPECT_EQ(described.at("additionalProperties"), false);
        const std::set<std::string> keys = keys_of(described.at("properties"));
        EXPECT_EQ(keys, texts_of(described.at("required")));
        EXPECT_EQ(keys, keys_of(cases.at(Json::json_pointer(place))));
    }
    std::set<std::string> actions;
    for (const Json& kind :
         document.at(Json::json_pointer("/$defs/case/properties/actions/items/oneOf")))
        actions.merge(texts_of(kind.at(Json::json_pointer("/properties/action/enum"))));
    EXPECT_EQ(actions, names<suites::ActionKind>(suites::kActionKinds));
}

TEST_F(Schemas, ListTheNamesThatAreRead) {
    const Json document = schema_document("evidence.schema.json");
    const auto listed = [&](const char* place) {
        return texts_of(document.at(Json::json_pointer(place)).at("enum"));
    };
    EXPECT_EQ(listed("/properties/observed/items"),
              names<suites::Observation>(suites::kObservations));
    EXPECT_EQ(listed("/$defs/collective/properties/phase"), names<memory::Phase>(memory::kPhases));
    EXPECT_EQ(listed("/$defs/collective/properties/op"), names<collectives::Op>(8));
    EXPECT_EQ(listed("/$defs/collective/properties/type"),
              names<memory::DType>(std::size(memory::kAllDTypes)));
    EXPECT_EQ(listed("/$defs/collective/properties/reduction"), names<collectives::Reduction>(5));
    EXPECT_EQ(listed("/$defs/collective/properties/traffic"),
              names<collectives::Traffic>(collectives::kTraffics));
    EXPECT_EQ(listed("/$defs/race/properties/kind"), names<collectives::RaceKind>(3));
}

}  // namespace
}  // namespace zeroproof::harness
