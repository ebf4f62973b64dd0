#include "harness/topology/topology_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "harness/temporary_folder.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {
namespace {

using collectives::Link;
using collectives::LinkClass;
using collectives::Sharing;
using scenarios::Json;

constexpr const char* kWhole = R"({
    "format": "zeroproof topology", "version": 1, "name": "two", "description": "d", "source": "s",
    "nodes": 2, "ranks_per_node": 4,
    "links": {
        "intra_node": {"kind": "NVSwitch", "bandwidth_gbit_per_s": 2400, "latency_us": 5,
                       "sharing": "rank"},
        "inter_node": {"kind": "Ethernet", "bandwidth_gbit_per_s": 0.1, "latency_us": null,
                       "sharing": "node"}}})";

Json whole() {
    return scenarios::parse_json(kWhole, "whole");
}

std::string why_refused(const std::string& text) {
    try {
        read_cluster(text, "my.json");
    } catch (const scenarios::BadInput& error) {
        return error.what();
    }
    return "accepted";
}
std::string why_refused_with(const char* place, const Json& value) {
    Json json = whole();
    json[Json::json_pointer(place)] = value;
    return why_refused(json.dump());
}

TEST(TopologyFile, IsReadInBytesAndSeconds) {
    const Cluster cluster = read_cluster(kWhole, "my.json");
    EXPECT_EQ(cluster.topology.name, "two");
    EXPECT_EQ(cluster.topology.nodes, 2);
    EXPECT_EQ(cluster.topology.ranks_per_node, 4);
    EXPECT_EQ(cluster.description, "d");
    EXPECT_EQ(cluster.source, "s");
    const Link& inside = cluster.topology.link(LinkClass::intra_node);
    EXPECT_EQ(inside.bandwidth_bytes_per_s, 300e9);
    EXPECT_DOUBLE_EQ(inside.latency_s.value(), 5e-6);
    EXPECT_EQ(inside.sharing, Sharing::rank);
    const Link& between = cluster.topology.link(LinkClass::inter_node);
    EXPECT_DOUBLE_EQ(between.bandwidth_bytes_per_s.value(), 12.5e6);
    EXPECT_FALSE(between.latency_s);
    EXPECT_EQ(between.sharing, Sharing::node);
    EXPECT_EQ(cluster.kinds[1], "Ethernet");
}

TEST(TopologyFile, LeavesUnknownWhatIsNullOrMissing) {
    Json json = whole();
    json["links"]["intra_node"] = {{"sharing", "rank"}, {"bandwidth_gbit_per_s", nullptr}};
    json["links"].erase("inter_node");
    const Cluster cluster = read_cluster(json.dump(), "my.json");
    for (const Link& link : cluster.topology.links) {
        EXPECT_FALSE(link.bandwidth_bytes_per_s);
        EXPECT_FALSE(link.latency_s);
    }
}

TEST(TopologyFile, ComesBackAsItWasWritten) {
    const std::string text = cluster_text(read_cluster(kWhole, "my.json"));
    EXPECT_EQ(scenarios::parse_json(text, "written"), whole());
}

TEST(TopologyFile, RefusalsNameTheFileAndThePlaceAndSayWhatIsAllowed) {
    const struct {
        const char* place;
        Json value;
        const char* why;
    } rows[] = {
        {"/format", "topology", "my.json: /format: "},
        {"/version", 2, "my.json: /version: 2 is outside of 1 to 1"},
        {"/name", "", "my.json: /name: "},
        {"/nodes", 0, "my.json: /nodes: 0 is outside of 1 to 1048576"},
        {"/nodes", 1.5, "my.json: /nodes: expected an integer"},
        {"/ranks_per_node", -1, "my.json: /ranks_per_node: -1 is outside"},
        {"/ranks_per_node", std::numeric_limits<std::uint64_t>::max(),
         "my.json: /ranks_per_node: 18446744073709551615 is outside"},
        {"/nodes", 1 << 19, "524288 nodes of 4 ranks are more than 1048576 ranks"},
        {"/links/inter_node/bandwidth_gbit_per_s", 0,
         "my.json: /links/inter_node/bandwidth_gbit_per_s: 0 is not a bandwidth: above 0"},
        {"/links/inter_node/bandwidth_gbit_per_s", -1, "-1 is not a bandwidth"},
        {"/links/inter_node/bandwidth_gbit_per_s", 1e300, "at most 1e+09 Gbit/s"},
        {"/links/inter_node/bandwidth_gbit_per_s", "fast", "expected a number"},
        {"/links/intra_node/latency_us", -0.5,
         "my.json: /links/intra_node/latency_us: -0.5 is not a latency: 0 to"},
        {"/links/intra_node/sharing", "all", "my.json: /links/intra_node/sharing: unknown \"all\""},
        {"/links/intra_node/speed", 1, "unknown key \"speed\""},
        {"/links/inter_rack", Json::object(), "unknown key \"inter_rack\""},
        {"/racks", 1, "unknown key \"racks\""},
    };
    for (const auto& [place, value, why] : rows)
        EXPECT_NE(why_refused_with(place, value).find(why), std::string::npos)
            << place << ' ' << value << ": " << why_refused_with(place, value);
    EXPECT_NE(why_refused(R"({"nodes": NaN})"), "accepted");
    EXPECT_NE(why_refused(R"({"nodes": 1e999})"), "accepted");
    EXPECT_NE(why_refused("[]"), "accepted");
    EXPECT_NE(why_refused(""), "accepted");
}

TEST(TopologyFile, IsFoundByNameOrPath) {
    EXPECT_EQ(load_topology("dgx2-25").ranks(), 400);
    const TemporaryFolder folder;
    const std::filesystem::path file = folder.path() / "mine";
    std::ofstream(file) << kWhole;
    std::filesystem::create_symlink(file, folder.path() / "link");
    EXPECT_EQ(load_topology(file.string()).ranks(), 8);
    EXPECT_EQ(load_topology((folder.path() / "link").string()).ranks(), 8);
    for (const std::string& missing :
         {std::string("no-such"), (folder.path() / "none").string(),
          (folder.path() / "none" / "none").string(), std::string("/dev/zero"), std::string("."),
          std::string("/")})
        EXPECT_THROW(load_topology(missing), scenarios::BadInput) << missing;
}

// As much of JSON schema as docs/topology.schema.json uses; empty if `json` obeys.
std::string breach(const Json& json, const Json& rule, const Json& document) {
    if (rule.contains("$ref"))
        return breach(json,
                      document.at(Json::json_pointer(rule["$ref"].get<std::string>().substr(1))),
                      document);
    const auto is_of = [&](const Json& type) {
        return (type == "object" && json.is_object()) || (type == "string" && json.is_string()) ||
               (type == "integer" && json.is_number_integer()) ||
               (type == "number" && json.is_number()) || (type == "null" && json.is_null());
    };
    bool is_typed = !rule.contains("type");
    if (!is_typed) {
        const Json types = rule["type"].is_array() ? rule["type"] : Json::array({rule["type"]});
        for (const Json& type : types) is_typed = is_typed || is_of(type);
    }
    if (!is_typed) return "type of " + json.dump();
    if (rule.contains("const") && json != rule["const"]) return "const " + json.dump();
    if (rule.contains("enum") &&
        std::find(rule["enum"].begin(), rule["enum"].end(), json) == rule["enum"].end())
        return "enum " + json.dump();
    if (rule.contains("minLength") && json.get<std::string>().empty()) return "minLength";
    if (json.is_number()) {
        const double value = json;
        if (rule.contains("minimum") && value < rule["minimum"]) return "minimum " + json.dump();
        if (rule.contains("maximum") && value > rule["maximum"]) return "maximum " + json.dump();
        if (rule.contains("exclusiveMinimum") && value <= rule["exclusiveMinimum"])
            return "exclusiveMinimum " + json.dump();
    }
    if (!rule.contains("properties")) return "";
    for (const Json& key : rule["required"])
        if (!json.contains(key.get<std::string>())) return "required " + key.dump();
    for (const auto& [key, value] : json.items()) {
        if (!rule["properties"].contains(key)) return "additional " + key;
        if (const std::string why = breach(value, rule["properties"][key], document); !why.empty())
            return why;
    }
    return "";
}

Json schema() {
    const std::string file =
        (std::filesystem::path(ZEROPROOF_SOURCE_DIR) / "docs" / "topology.schema.json").string();
    return scenarios::parse_json(scenarios::read_text_file(file), file);
}

TEST(TopologySchema, IsObeyedByEveryClusterAndByWhatIsWritten) {
    ASSERT_FALSE(cluster_files().empty());
    const Json rules = schema();
    for (const std::string& name : cluster_names()) {
        SCOPED_TRACE(name);
        const Cluster cluster = load_cluster(name);
        EXPECT_EQ(cluster.topology.name, name);
        EXPECT_NE(cluster.description, "");
        EXPECT_NE(cluster.source, "");
        EXPECT_EQ(breach(scenarios::parse_json(cluster_text(cluster), name), rules, rules), "");
        for (const ClusterFile& file : cluster_files()) {
            if (file.name != name + ".json") continue;
            EXPECT_EQ(breach(scenarios::parse_json(file.text, name), rules, rules), "");
        }
    }
}

TEST(TopologySchema, AgreesWithTheReader) {
    const Json rules = schema();
    const auto expect_same = [&](const Json& json) {
        EXPECT_EQ(breach(json, rules, rules) == "", why_refused(json.dump()) == "accepted")
            << json << breach(json, rules, rules) << why_refused(json.dump());
    };
    expect_same(whole());
    for (const std::string place : {"", "/links", "/links/intra_node"}) {
        const Json keys = whole().at(Json::json_pointer(place));
        for (const auto& [key, value] : keys.items()) {
            Json changed = whole();
            changed.at(Json::json_pointer(place)).erase(key);
            expect_same(changed);
            for (const Json& other : {Json(nullptr), Json(0), Json(-1), Json(0.5), Json(2),
                                      Json(2e9), Json(""), Json("rank"), Json::array()}) {
                changed = whole();
                changed.at(Json::json_pointer(place))[key] = other;
                expect_same(changed);
            }
        }
    }
}

}  // namespace
}  // namespace zeroproof::harness
