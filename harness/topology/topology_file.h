// Topologies as files; docs/topology.md has the format.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/topology.h"

namespace zeroproof::harness {

// A topology with what a file says about it beside the numbers.
struct Cluster {
    collectives::Topology topology;
    std::string description;
    std::string source;                                        // of the numbers
    std::array<std::string, collectives::kLinkClasses> kinds;  // by LinkClass: "NVSwitch"
};

inline constexpr int kMostRanks = 1 << 20;

// `file` is its name in messages. Throws scenarios::BadInput.
Cluster read_cluster(std::string_view text, const std::string& file);
// JSON that read_cluster accepts; what is not known is null.
std::string cluster_text(const Cluster& cluster);

// A file of scenarios/clusters, put into the program when it is built.
struct ClusterFile {
    std::string_view name;
    std::string_view text;
};
const std::vector<ClusterFile>& cluster_files();

// The names by which load_cluster knows them: those of the files without ".json".
std::vector<std::string> cluster_names();
// One of these, or the path of a file, which holds a "/" or a ".". Throws scenarios::BadInput.
Cluster load_cluster(const std::string& name_or_path);
collectives::Topology load_topology(const std::string& name_or_path);

}  // namespace zeroproof::harness
