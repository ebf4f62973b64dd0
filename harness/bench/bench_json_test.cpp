#include "harness/bench/bench_json.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "harness/bench/sample_record.h"
#include "harness/temporary_folder.h"
#include "harness/writers/writer.h"

namespace zeroproof::harness {
namespace {

using scenarios::BadInput;
using scenarios::Json;

// What reading says against a document, or "" if nothing.
std::string refusal_of(const std::string& text) {
    try {
        parse_bench_json(text, "r.json");
    } catch (const BadInput& error) {
        return error.what();
    }
    return "";
}
std::string refusal_of(const Json& document) {
    return refusal_of(document.dump());
}

TEST(BenchJson, WhatIsWrittenIsReadAsItWas) {
    for (const char* shape : {"1x4", "2x2", "4x2"}) {
        const BenchRecord record = sample_record(shape);
        const std::string text = to_bench_json(record);
        EXPECT_EQ(to_bench_json(parse_bench_json(text, "r.json")), text);
        EXPECT_EQ(shape_of(record.topology), shape);
        EXPECT_EQ(record.operations.size(), sample_json(shape)["operations"].size());
    }
}

TEST(BenchJson, KeepsEveryValue) {
    const BenchRecord record = sample_record("2x2");
    const Json json = sample_json("2x2");
    EXPECT_EQ(record.host, json["host"]);
    EXPECT_NEAR(*record.topology.links[1].bandwidth_bytes_per_s, 0.5e9, 1);
    EXPECT_NEAR(*record.topology.links[1].latency_s, 60e-6, 1e-12);
    const OperationResult& ring = record.operations.at(7);
    EXPECT_EQ(ring.algorithm, "ring");
    EXPECT_EQ(ring.timing.seconds, json["operations"][7]["timing"]["seconds"]);
    EXPECT_EQ(ring.timing.slowest_rank, json["operations"][7]["timing"]["slowest_rank"]);
    EXPECT_EQ(ring.sent->at(1), json["operations"][7]["sent_elements"]["inter_node"]);
    EXPECT_EQ(ring.prediction->seconds, json["operations"][7]["prediction"]["seconds"]);
    EXPECT_FALSE(record.operations.at(0).prediction);
    EXPECT_FALSE(record.operations.at(0).sent);
    const StageResult& stage = record.stages.back();
    EXPECT_EQ(stage.stage, 3);
    EXPECT_EQ(stage.formula, "3 Phi");
    EXPECT_EQ(stage.volumes.size(), 3u);
    EXPECT_EQ(stage.nominal_elements, 3 * stage.parameters);
    EXPECT_EQ(record.fits.at(0).latency_s[0], std::nullopt);
    EXPECT_EQ(record.fits.at(0).errors.held_out_sizes, 3u);
}

TEST(BenchJson, DerivedValuesAreNotBelieved) {
    Json json = sample_json("1x4");
    Json& operation = json["operations"][0];
    const double median = operation["timing"]["median_seconds"];
    operation["timing"]["median_seconds"] = 1000;
    operation["bus_bandwidth_bytes_per_s"] = "fast";
    operation.erase("algorithm_bandwidth_bytes_per_s");
    const BenchRecord record = parse_bench_json(json.dump(), "r.json");
    EXPECT_EQ(record.operations[0].timing.median_seconds(), median);
}

TEST(BenchJson, RefusesWhatCannotBeAndNamesThePlace) {
    const Json good = sample_json("2x2");
    const struct {
        const char* place;
        Json value;
        const char* complaint;
    } rows[] = {
        {"/format", "other", "no record of `zeroproof bench`"},
        {"/version", 2, "/version"},
        {"/colour", 1, "colour"},
        {"/complete", false, "/ended_by"},
        {"/topology/nodes", 0, "/nodes"},
        {"/topology/links/intra_node/bandwidth_gbit_per_s", -1, "bandwidth"},
        {"/backend", "", "/backend"},
        {"/operations/0/op", "reduce_all", "/operations/0/op"},
        {"/operations/0/algorithm", std::string(1000, 'a'), "/operations/0/algorithm"},
        {"/operations/0/type", "fp8", "/operations/0/type"},
        {"/operations/0/ranks", 5, "/operations/0/ranks"},
        {"/operations/0/bytes", -4, "/operations/0/bytes"},
        {"/operations/0/bytes", 1e300, "/operations/0/bytes"},
        {"/operations/0/timing/seconds", Json::array(), "no repeats"},
        {"/operations/0/timing/seconds/2", -1e-3, "/operations/0/timing/seconds/2"},
        {"/operations/0/timing/seconds/2", 0, "/operations/0/timing/seconds/2"},
        {"/operations/0/timing/seconds/2", nullptr, "/operations/0/timing/seconds/2"},
        {"/operations/0/timing/slowest_rank", {0, 1}, "2 entries for 7 repeats"},
        {"/operations/0/timing/slowest_rank/1", 4, "/operations/0/timing/slowest_rank/1"},
        {"/operations/0/bus_factor", -1, "/operations/0/bus_factor"},
        {"/operations/0/bus_limit_bytes_per_s", 0, "/operations/0/bus_limit_bytes_per_s"},
        {"/operations/0/sent_elements", {{"intra_node", 1}}, "inter_node"},
        {"/operations/7/prediction/seconds", 0, "/operations/7/prediction/seconds"},
        {"/operations/1", good["operations"][0], "stands twice"},
        {"/stages/0/stage", 4, "/stages/0/stage"},
        {"/stages/0/micro_steps", 0, "/stages/0/micro_steps"},
        {"/stages/0/parameters", 0, "/stages/0/parameters"},
        {"/stages/0/compute_seconds", -1, "/stages/0/compute_seconds"},
        {"/stages/0/overlap", 1, "/stages/0/overlap"},
        {"/stages/0/volumes/0/traffic", "heavy", "/stages/0/volumes/0/traffic"},
        {"/stages/0/volumes/0/phase", "moon", "/stages/0/volumes/0/phase"},
        {"/stages/0/volumes/0/nominal_elements", 1, "add up to 1"},
        {"/stages/1", good["stages"][0], "stands twice"},
        {"/fits/0/errors/fitted", -0.1, "/fits/0/errors/fitted"},
        {"/fits/0/latency_s/inter_node", -1e-6, "/fits/0/latency_s/inter_node"},
    };
    EXPECT_EQ(refusal_of(good), "");
    for (const auto& [place, value, complaint] : rows) {
        Json bad = good;
        bad[Json::json_pointer(place)] = value;
        const std::string refusal = refusal_of(bad);
        EXPECT_NE(refusal.find("r.json"), std::string::npos) << place << ": " << refusal;
        EXPECT_NE(refusal.find(complaint), std::string::npos) << place << ": " << refusal;
    }
    EXPECT_NE(refusal_of(std::string("{\"format\": NaN}")), "");
    EXPECT_NE(refusal_of(std::string("[]")).find("no record"), std::string::npos);
    EXPECT_NE(refusal_of(std::string(R"({"record_version": 1})")).find("zeroproof verify"),
              std::string::npos);
}

TEST(BenchJson, WritesNothingThatItWouldNotRead) {
    BenchRecord record = sample_record("1x4");
    record.operations[0].timing.seconds[0] = std::numeric_limits<double>::quiet_NaN();
    EXPECT_THROW(to_bench_json(record), std::logic_error);
    record = sample_record("1x4");
    record.stages[0].nominal_elements += 1;
    EXPECT_THROW(to_bench_json(record), std::logic_error);
    record = sample_record("1x4");
    record.operations[0].timing = {};
    EXPECT_THROW(to_bench_json(record), std::logic_error);
}

TEST(BenchJson, TextThatIsNoUnicodeDoesNotCostTheRecord) {
    BenchRecord record = sample_record("1x4");
    record.command = "zeroproof \xff bench";
    EXPECT_EQ(parse_bench_json(to_bench_json(record), "r.json").command,
              "zeroproof \xEF\xBF\xBD bench");
}

TEST(BenchJson, ATopologyWithoutANameGoesByItsShape) {
    BenchRecord record = sample_record("2x2");
    record.topology.name = "";
    EXPECT_EQ(parse_bench_json(to_bench_json(record), "r.json").topology.name, "2x2");
}

TEST(BenchJson, FilesAreWholeOrAsTheyWere) {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "r.json").string();
    BenchRecord record = sample_record("1x4");
    write_bench_json(file, record);
    EXPECT_EQ(to_bench_json(read_bench_json(file)), to_bench_json(record));
    record.operations[0].timing = {};
    EXPECT_THROW(write_bench_json(file, record), std::logic_error);
    EXPECT_NO_THROW(read_bench_json(file));
    EXPECT_THROW(write_bench_json("/nowhere/r.json", sample_record("1x4")), Unwritable);
    EXPECT_THROW(read_bench_json("/nowhere/r.json"), BadInput);
}

}  // namespace
}  // namespace zeroproof::harness
