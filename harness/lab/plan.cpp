#include "harness/lab/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/lab/lab_files.h"
#include "harness/lab/shaping.h"

namespace zeroproof::harness {

namespace {

using collectives::Link;
using collectives::LinkClass;

constexpr int kMostNodes = 200;  // addresses of a subnet, less some
constexpr int kMostLabRanks = 1024;
// What software still carries between two namespaces; a faster link would be a slower one in truth.
constexpr double kMostGbitPerS = 40;
constexpr double kLeastGbitPerS = 0.001;
constexpr double kMostLatencyUs = 1e6;
constexpr std::size_t kLongestName = 32;

constexpr const char* kNeedsNetem =
    "latency takes the kernel's netem: modprobe sch_netem, or --latency-us 0 for a lab without";
constexpr const char* kPort = "eth0";
constexpr const char* kBridge = "br0";

void refuse_unless(bool holds, const std::string& why) {
    if (!holds) throw LabRefused(why);
}

void check_link(const Cluster& cluster, const Link& link) {
    const collectives::Topology& topology = cluster.topology;
    refuse_unless(link.bandwidth_bytes_per_s.has_value(),
                  fmt::format("{}: the bandwidth between nodes is not known: give "
                              "--bandwidth-gbit-per-s",
                              topology.name));
    const double gbit_per_s = *link.bandwidth_bytes_per_s * 8 / 1e9;
    refuse_unless(gbit_per_s >= kLeastGbitPerS && gbit_per_s <= kMostGbitPerS,
                  fmt::format("{}: {:g} Gbit/s between nodes is outside of the {:g} to {:g} that a "
                              "lab can shape: give --bandwidth-gbit-per-s",
                              topology.name, gbit_per_s, kLeastGbitPerS, kMostGbitPerS));
    refuse_unless(link.latency_s.value_or(0) <= kMostLatencyUs * 1e-6,
                  fmt::format("{}: a latency above {:g} us", topology.name, kMostLatencyUs));
    refuse_unless(
        link.sharing == collectives::Sharing::node || topology.ranks_per_node == 1,
        fmt::format("{}: each of the {} ranks of a node has a link of its own to other nodes, but "
                    "in a lab they share the one of their node",
                    topology.name, topology.ranks_per_node));
}

class Steps {
  public:
    void make_namespace(const std::string& name) {
        steps_.push_back({{"ip", "netns", "add", name}, name, ""});
        in(name, {"link", "set", "dev", "lo", "up"});
    }
    void in(const std::string& name_space, std::vector<std::string> words) {
        std::vector<std::string> command = {"ip", "-n", name_space};
        command.insert(command.end(), words.begin(), words.end());
        steps_.push_back({std::move(command), "", ""});
    }
    void shape(const std::string& name_space, const std::string& device, const Shape& shape) {
        for (auto& command : shaping_commands(name_space, device, shape)) {
            const bool delays = std::ranges::find(command, "netem") != command.end();
            steps_.push_back({std::move(command), "", delays ? kNeedsNetem : ""});
        }
    }
    std::vector<LabStep> take() { return std::move(steps_); }

  private:
    std::vector<LabStep> steps_;
};

std::vector<LabStep> steps_of(const LabPlan& plan, const std::string& switch_space) {
    const std::string mtu = fmt::format("{}", kLabMtuBytes);
    const Shape to_switch = shape_for(plan.cluster.topology.link(LinkClass::inter_node));
    Shape to_node = to_switch;  // a packet passes both, and is delayed once
    to_node.delay_s = 0;
    Steps steps;
    steps.make_namespace(switch_space);
    steps.in(switch_space,
             {"link", "add", kBridge, "mtu", mtu, "type", "bridge", "mcast_snooping", "0"});
    for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
        const LabNode& node = plan.nodes[i];
        const std::string port = fmt::format("node{}", i);
        steps.make_namespace(node.name_space);
        // Made with both ends in their places: none is ever seen outside.
        steps.in(node.name_space, {"link", "add", kPort, "mtu", mtu, "type", "veth", "peer", "name",
                                   port, "mtu", mtu, "netns", switch_space});
        steps.shape(node.name_space, kPort, to_switch);
        steps.shape(switch_space, port, to_node);
        for (const auto& [name_space, device] :
             {std::pair(switch_space, port), std::pair(node.name_space, std::string(kPort))})
            steps.in(name_space, {"link", "set", "dev", device, "addrgenmode", "none"});
        steps.in(switch_space, {"link", "set", "dev", port, "master", kBridge, "up"});
        steps.in(node.name_space,
                 {"addr", "add", fmt::format("{}/24", node.address), "dev", kPort});
        steps.in(node.name_space, {"link", "set", "dev", kPort, "up"});
        // The congestion control that is everywhere, whatever the machine's own is. A packet lost
        // in a full queue is sent again soon, but not before a busy processor can have answered.
        steps.in(node.name_space, {"route", "replace", plan.subnet.text(), "dev", kPort, "src",
                                   node.address, "congctl", "cubic", "rto_min", "40ms"});
    }
    steps.in(switch_space, {"link", "set", "dev", kBridge, "addrgenmode", "none", "up"});
    return steps.take();
}

}  // namespace

std::string Subnet::address(int last) const {
    return fmt::format("{}.{}", fmt::join(bytes, "."), last);
}

std::string Subnet::text() const {
    return address(0) + "/24";
}

Cluster lab_cluster(Cluster cluster, const LabOverrides& overrides) {
    collectives::Topology& topology = cluster.topology;
    refuse_unless(
        topology.nodes <= kMostNodes && topology.ranks() <= kMostLabRanks,
        fmt::format("{}: {} nodes with {} ranks are more than a lab has: {} and {}", topology.name,
                    topology.nodes, topology.ranks(), kMostNodes, kMostLabRanks));
    const auto intra = static_cast<std::size_t>(LinkClass::intra_node);
    const auto inter = static_cast<std::size_t>(LinkClass::inter_node);
    topology.links[intra] = {};
    cluster.kinds[intra] = "shared memory";
    if (topology.nodes == 1) {
        refuse_unless(!overrides.bandwidth_gbit_per_s && !overrides.latency_us,
                      fmt::format("{}: one node has no links to others", topology.name));
        return cluster;
    }
    Link& link = topology.links[inter];
    if (overrides.bandwidth_gbit_per_s) {
        link.bandwidth_bytes_per_s = *overrides.bandwidth_gbit_per_s * 1e9 / 8;
        topology.name += fmt::format(" at {:g} Gbit/s", *overrides.bandwidth_gbit_per_s);
    }
    if (overrides.latency_us) {
        link.latency_s = *overrides.latency_us * 1e-6;
        topology.name += fmt::format(" with {:g} us", *overrides.latency_us);
    }
    check_link(cluster, link);
    cluster.kinds[inter] = "shaped virtual Ethernet";
    return cluster;
}

std::vector<std::string> LabPlan::namespaces() const {
    std::vector<std::string> all;
    for (const LabStep& step : steps)
        if (!step.makes.empty()) all.push_back(step.makes);
    return all;
}

LabPlan plan_lab(const std::string& name, const Cluster& cluster, const Subnet& subnet) {
    const auto is_plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    };
    refuse_unless(!name.empty() && name.size() <= kLongestName && name.front() != '-' &&
                      std::ranges::all_of(name, is_plain),
                  fmt::format("the name of a lab is of a to z, 0 to 9 and -, at most {} of them",
                              kLongestName));
    LabPlan plan{name, cluster, subnet, {}, {}};
    const bool has_network = cluster.topology.nodes > 1;
    for (int i = 0; i < cluster.topology.nodes; ++i) {
        const std::string host = fmt::format("{}-n{}", name, i);
        plan.nodes.push_back({host, host, has_network ? subnet.address(i + 1) : ""});
    }
    if (has_network) plan.steps = steps_of(plan, name + "-switch");
    return plan;
}

std::vector<std::string> launch_command(const LabPlan& plan, const std::filesystem::path& folder,
                                        const std::vector<std::string>& command) {
    const collectives::Topology& topology = plan.cluster.topology;
    const LabFiles files(folder);
    std::vector<std::string> all = {"mpirun",
                                    "--allow-run-as-root",
                                    "-np",
                                    fmt::format("{}", topology.ranks()),
                                    "--oversubscribe",
                                    "--bind-to",
                                    "none",
                                    "--map-by",
                                    "slot"};
    const auto set = [&](const std::string& name, const std::string& value) {
        all.insert(all.end(), {"--mca", name, value});
    };
    // Ranks are more than processors: one that waits lets another work.
    set("mpi_yield_when_idle", "1");
    set("pml", "ob1");
    // Long messages in fragments: as one they hold up what answers messages that come in, and links
    // carry one direction at a time.
    set("btl_tcp_flags", "send");
    set("orte_tmpdir_base", files.temporary().string());
    if (plan.has_network()) {
        std::vector<std::string> hosts;
        for (const LabNode& node : plan.nodes)
            hosts.push_back(fmt::format("{}:{}", node.address, topology.ranks_per_node));
        all.insert(all.end(), {"--host", fmt::format("{}", fmt::join(hosts, ","))});
        set("plm", "rsh");
        set("plm_rsh_agent", files.shell().string());
        set("plm_rsh_no_tree_spawn", "1");
        set("btl", "self,vader,tcp");
        set("btl_tcp_if_include", plan.subnet.text());
        set("oob_tcp_if_include", plan.subnet.text());
    } else {
        all.insert(all.end(), {"--host", fmt::format("localhost:{}", topology.ranks())});
        set("btl", "self,vader");
        set("oob_tcp_if_include", "lo");
    }
    for (const std::string variable : {"ZEROPROOF_TOPOLOGY", "ZEROPROOF_LAB"})
        all.insert(all.end(), {"-x", variable});
    all.insert(all.end(), command.begin(), command.end());
    return all;
}

}  // namespace zeroproof::harness
