// docs/bench.schema.json says what is written and demanded here.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "collectives/communicator.h"
#include "collectives/record.h"
#include "harness/bench/sample_record.h"
#include "harness/protocol/schema_check.h"
#include "memory/dtype.h"
#include "memory/ledger.h"

namespace zeroproof::harness {
namespace {

using scenarios::Json;

bool is_read(const Json& json) {
    try {
        parse_bench_json(json.dump(), "r.json");
    } catch (const scenarios::BadInput&) {
        return false;
    }
    return true;
}

TEST(BenchSchema, AcceptsWhatIsWritten) {
    const Schema schema("bench.schema.json");
    for (const char* shape : {"1x4", "2x2", "4x2"}) {
        BenchRecord record = sample_record(shape);
        EXPECT_TRUE(schema.accepts(Json::parse(to_bench_json(record)))) << shape;
        record.complete = false;
        record.ended_by = "a rank has died";
        record.operations.resize(1);
        record.stages.clear();
        record.fits.clear();
        EXPECT_TRUE(schema.accepts(Json::parse(to_bench_json(record)))) << shape;
    }
}

TEST(BenchSchema, DemandsAndKnowsTheKeysThatAreDemandedAndRead) {
    const Schema schema("bench.schema.json");
    const Json good = Json::parse(to_bench_json(sample_record("2x2")));
    const struct {
        const char* definition;  // empty is the document itself
        const char* place;       // of one in the record
    } rows[] = {
        {"", ""},
        {"/$defs/operation", "/operations/7"},
        {"/$defs/timing", "/operations/7/timing"},
        {"/$defs/sent_elements/oneOf/1", "/operations/7/sent_elements"},
        {"/$defs/prediction/oneOf/1", "/operations/7/prediction"},
        {"/$defs/stage", "/stages/1"},
        {"/$defs/timing", "/stages/1/timing"},
        {"/$defs/volume", "/stages/1/volumes/0"},
        {"/$defs/fit", "/fits/0"},
        {"/$defs/fit/properties/latency_s", "/fits/0/latency_s"},
        {"/$defs/fit/properties/errors", "/fits/0/errors"},
    };
    for (const auto& [definition, place] : rows) {
        const Json& described = schema.root().at(Json::json_pointer(definition));
        EXPECT_EQ(described.at("additionalProperties"), false) << definition;
        EXPECT_EQ(keys_of(described.at("properties")), keys_of(good[Json::json_pointer(place)]))
            << definition;
        for (const std::string& key : keys_of(described.at("properties"))) {
            Json less = good;
            less[Json::json_pointer(place)].erase(key);
            EXPECT_EQ(schema.accepts(less), is_read(less)) << place << "/" << key;
        }
        Json more = good;
        more[Json::json_pointer(place)]["colour"] = 1;
        EXPECT_FALSE(schema.accepts(more)) << place;
        EXPECT_FALSE(is_read(more)) << place;
    }
}

TEST(BenchSchema, BoundsAreThoseOfTheReader) {
    const Schema schema("bench.schema.json");
    const Json good = Json::parse(to_bench_json(sample_record("2x2")));
    const struct {
        const char* place;
        Json value;
    } rows[] = {
        {"/operations/0/timing/seconds", Json::array()},
        {"/operations/0/timing/seconds/0", 0},
        {"/operations/0/timing/seconds/0", "1"},
        {"/operations/0/bytes", 0},
        {"/operations/0/bytes", 1.5},
        {"/operations/0/bytes", (std::int64_t{1} << 53) + 1},
        {"/operations/0/algorithm", ""},
        {"/operations/0/algorithm", std::string(101, 'a')},
        {"/operations/0/sent_elements", 0},
        {"/operations/0/bus_factor", -1},
        {"/stages/0/stage", 4},
        {"/stages/0/micro_steps", 0},
        {"/stages/0/parameters", 0},
        {"/stages/0/compute_seconds", -1},
        {"/topology/nodes", 0},
        {"/processors", -1},
        {"/version", 2},
    };
    for (const auto& [place, value] : rows) {
        Json bad = good;
        bad[Json::json_pointer(place)] = value;
        EXPECT_FALSE(schema.accepts(bad)) << place << " " << value;
        EXPECT_FALSE(is_read(bad)) << place << " " << value;
    }
}

TEST(BenchSchema, ListsTheNamesThatAreRead) {
    const Json defs = schema_document("bench.schema.json").at("$defs");
    const auto listed = [&](const char* place) {
        return texts_of(defs.at(Json::json_pointer(place)).at("enum"));
    };
    EXPECT_EQ(listed("/op"), names<collectives::Op>(8));
    EXPECT_EQ(listed("/type"), names<memory::DType>(std::size(memory::kAllDTypes)));
    EXPECT_EQ(listed("/volume/properties/traffic"),
              names<collectives::Traffic>(collectives::kTraffics));
    EXPECT_EQ(listed("/volume/properties/phase"), names<memory::Phase>(memory::kPhases));
}

}  // namespace
}  // namespace zeroproof::harness
