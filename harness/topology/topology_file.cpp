#include "harness/topology/topology_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "harness/protocol/untrusted_file.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {

namespace {

using collectives::Link;
using collectives::LinkClass;
using collectives::Sharing;
using scenarios::Json;
using scenarios::JsonReader;

constexpr std::string_view kFormat = "zeroproof topology";
constexpr int kVersion = 1;
constexpr std::uint64_t kMostBytes = 1 << 20;
constexpr double kBytesPerGbit = 1e9 / 8;
constexpr double kSecondsPerUs = 1e-6;
// Beyond any machine, so that no sum or product of what was read leaves the range of a double.
constexpr double kMostGbitPerS = 1e9;
constexpr double kMostLatencyUs = 1e9;

std::string text_or_empty(const JsonReader& object, std::string_view key) {
    return object.has(key) ? object.at(key).text() : "";
}

// Null and left out are one: not known.
std::optional<double> number_or_unknown(const JsonReader& object, std::string_view key) {
    if (!object.has(key) || object.at(key).json().is_null()) return {};
    return object.at(key).number();
}

Link read_link(const JsonReader& json, std::string& kind) {
    json.allow({"kind", "bandwidth_gbit_per_s", "latency_us", "sharing"});
    kind = text_or_empty(json, "kind");
    Link link;
    if (const auto bandwidth = number_or_unknown(json, "bandwidth_gbit_per_s")) {
        if (!(*bandwidth > 0) || *bandwidth > kMostGbitPerS)
            json.at("bandwidth_gbit_per_s")
                .fail(fmt::format("{} is not a bandwidth: above 0 and at most {:g} Gbit/s, or null "
                                  "if it is not known",
                                  *bandwidth, kMostGbitPerS));
        link.bandwidth_bytes_per_s = *bandwidth * kBytesPerGbit;
    }
    if (const auto latency = number_or_unknown(json, "latency_us")) {
        if (!(*latency >= 0) || *latency > kMostLatencyUs)
            json.at("latency_us")
                .fail(fmt::format("{} is not a latency: 0 to {:g} microseconds, or null if it is "
                                  "not known",
                                  *latency, kMostLatencyUs));
        link.latency_s = *latency * kSecondsPerUs;
    }
    link.sharing = scenarios::read_named<Sharing>(json.at("sharing"), 2);
    return link;
}

std::string stem_of(const ClusterFile& file) {
    return std::string(file.name.substr(0, file.name.rfind('.')));
}

// A number as people write it: 0.1 Gbit/s is not a whole number of bytes.
Json rounded(std::optional<double> value, double unit) {
    if (!value) return nullptr;
    return std::stod(fmt::format("{:.12g}", *value / unit));
}

}  // namespace

Cluster read_cluster(std::string_view text, const std::string& file) {
    const Json document = scenarios::parse_json(text, file);
    const JsonReader json(document, file);
    json.allow(
        {"format", "version", "name", "description", "source", "nodes", "ranks_per_node", "links"});
    json.at("format").choice({kFormat});
    json.at("version").integer(kVersion, kVersion);
    Cluster cluster;
    cluster.description = text_or_empty(json, "description");
    cluster.source = text_or_empty(json, "source");
    collectives::Topology& topology = cluster.topology;
    topology.name = json.at("name").text();
    if (topology.name.empty()) json.at("name").fail("a topology has a name");
    topology.nodes = static_cast<int>(json.at("nodes").integer(1, kMostRanks));
    topology.ranks_per_node = static_cast<int>(json.at("ranks_per_node").integer(1, kMostRanks));
    if (std::int64_t{topology.nodes} * topology.ranks_per_node > kMostRanks)
        json.fail(fmt::format("{} nodes of {} ranks are more than {} ranks", topology.nodes,
                              topology.ranks_per_node, kMostRanks));
    const JsonReader links = json.at("links");
    links.allow({name_of(LinkClass::intra_node), name_of(LinkClass::inter_node)});
    for (const LinkClass link_class : collectives::kAllLinkClasses) {
        const auto i = static_cast<std::size_t>(link_class);
        // A single node has nothing between nodes, and ranks that stand alone nothing inside.
        if (links.has(name_of(link_class)))
            topology.links[i] = read_link(links.at(name_of(link_class)), cluster.kinds[i]);
    }
    return cluster;
}

std::string cluster_text(const Cluster& cluster) {
    const collectives::Topology& topology = cluster.topology;
    Json links = Json::object();
    for (const LinkClass link_class : collectives::kAllLinkClasses) {
        const Link& link = topology.link(link_class);
        links[std::string(name_of(link_class))] = {
            {"kind", cluster.kinds[static_cast<std::size_t>(link_class)]},
            {"bandwidth_gbit_per_s", rounded(link.bandwidth_bytes_per_s, kBytesPerGbit)},
            {"latency_us", rounded(link.latency_s, kSecondsPerUs)},
            {"sharing", name_of(link.sharing)}};
    }
    const Json document = {{"format", kFormat},
                           {"version", kVersion},
                           {"name", topology.name},
                           {"description", cluster.description},
                           {"source", cluster.source},
                           {"nodes", topology.nodes},
                           {"ranks_per_node", topology.ranks_per_node},
                           {"links", links}};
    return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<std::string> cluster_names() {
    std::vector<std::string> names;
    for (const ClusterFile& file : cluster_files()) names.push_back(stem_of(file));
    return names;
}

Cluster load_cluster(const std::string& name_or_path) {
    for (const ClusterFile& file : cluster_files())
        if (stem_of(file) == name_or_path) return read_cluster(file.text, std::string(file.name));
    if (name_or_path.find_first_of("/.") == std::string::npos)
        throw scenarios::BadInput(
            fmt::format("unknown cluster '{}'; known are: {}; a file is named with its folder, "
                        "./my_cluster.json",
                        name_or_path, fmt::join(cluster_names(), ", ")));
    // A link that the user names is followed; what it leads to must be a plain file.
    std::error_code error;
    const std::filesystem::path path = std::filesystem::canonical(name_or_path, error);
    if (error)
        throw scenarios::BadInput(
            fmt::format("{}: cannot be read: {}", name_or_path, error.message()));
    return read_cluster(
        UntrustedFile::demand(path.parent_path(), path.filename(), kMostBytes).text(),
        name_or_path);
}

collectives::Topology load_topology(const std::string& name_or_path) {
    return load_cluster(name_or_path).topology;
}

}  // namespace zeroproof::harness
