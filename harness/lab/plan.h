// A lab: a cluster of network namespaces on one machine. What is made, as commands.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/topology/topology_file.h"

namespace zeroproof::harness {

// Why a lab cannot be as it was asked for. Nothing has been made.
class LabRefused : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// What replaces the numbers of the cluster between its nodes.
struct LabOverrides {
    std::optional<double> bandwidth_gbit_per_s;
    std::optional<double> latency_us;
};

// The lab's own view of a cluster: shaped between nodes as the cluster says, and inside a node the
// memory of the machine at hand, of which nothing is known. Throws LabRefused for what cannot be
// shaped.
Cluster lab_cluster(Cluster cluster, const LabOverrides& overrides);

// 256 IPv4 addresses, of which the last byte is 0: "10.213.0.0/24".
struct Subnet {
    std::array<int, 3> bytes{};

    std::string address(int last) const;
    std::string text() const;  // with its length
};

struct LabNode {
    std::string name_space;
    std::string host;     // its own name, also that of the namespace
    std::string address;  // empty where there is only one node
};

struct LabStep {
    std::vector<std::string> command;
    std::string makes;  // the namespace, or nothing
    std::string needs;  // what to say if it fails, or nothing
};

struct LabPlan {
    std::string name;
    Cluster cluster;
    Subnet subnet;
    std::vector<LabNode> nodes;
    std::vector<LabStep> steps;  // in this order; none for one node

    bool has_network() const { return nodes.size() > 1; }
    std::vector<std::string> namespaces() const;
};

// Of a lab_cluster. Throws LabRefused for a name that cannot be one of a host.
LabPlan plan_lab(const std::string& name, const Cluster& cluster, const Subnet& subnet);

// mpirun on the first node, with a rank in each place of the cluster; `folder` is the lab's.
std::vector<std::string> launch_command(const LabPlan& plan, const std::filesystem::path& folder,
                                        const std::vector<std::string>& command);

}  // namespace zeroproof::harness
