#include "harness/lab/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace zeroproof::harness {
namespace {

using collectives::LinkClass;
using collectives::Sharing;
using collectives::Topology;

const Subnet kSubnet{{10, 1, 2}};

std::string line_of(const std::vector<std::string>& command) {
    return fmt::format("{}", fmt::join(command, " "));
}
std::vector<std::string> lines_of(const LabPlan& plan) {
    std::vector<std::string> lines;
    for (const LabStep& step : plan.steps) lines.push_back(line_of(step.command));
    return lines;
}
LabPlan plan_of(const std::string& cluster, const LabOverrides& overrides = {}) {
    return plan_lab("t", lab_cluster(load_cluster(cluster), overrides), kSubnet);
}
std::string why_refused(const Cluster& cluster, const LabOverrides& overrides = {}) {
    try {
        lab_cluster(cluster, overrides);
    } catch (const LabRefused& refused) {
        return refused.what();
    }
    return "accepted";
}

TEST(LabPlan, ShapesBothEndsOfEachNodesLink) {
    const std::vector<std::string> lines = lines_of(plan_of("lab-2x3-1g"));
    const auto count = [&](const std::string& text) {
        return std::ranges::count_if(
            lines, [&](const std::string& line) { return line.find(text) != line.npos; });
    };
    for (const std::string end :
         {"tc -n t-n0 qdisc add dev eth0", "tc -n t-n1 qdisc add dev eth0",
          "tc -n t-switch qdisc add dev node0", "tc -n t-switch qdisc add dev node1"})
        EXPECT_EQ(count(end + " root handle 1: tbf rate 1000000000bit burst 62500b limit 500000b"),
                  1);
    EXPECT_EQ(count("netem"), 0);
}

TEST(LabPlan, MakesNothingOutsideOfItsNamespaces) {
    const LabPlan plan = plan_of("lab-4x2-1g");
    for (const LabStep& step : plan.steps) {
        if (step.makes.empty()) {
            EXPECT_EQ(step.command.at(1), "-n") << line_of(step.command);
            EXPECT_TRUE(step.command.at(2).starts_with("t-")) << line_of(step.command);
        } else {
            EXPECT_EQ(line_of(step.command), "ip netns add " + step.makes);
        }
    }
    EXPECT_EQ(plan.namespaces(),
              (std::vector<std::string>{"t-switch", "t-n0", "t-n1", "t-n2", "t-n3"}));
}

TEST(LabPlan, DelaysAPacketOnce) {
    const std::vector<std::string> lines = lines_of(plan_of("lab-2x2-1g", {{}, 50}));
    std::vector<std::string> delays;
    for (const std::string& line : lines)
        if (line.find("netem delay 50us") != line.npos) delays.push_back(line.substr(0, 11));
    EXPECT_EQ(delays, (std::vector<std::string>{"tc -n t-n0 ", "tc -n t-n1 "}));
}

TEST(LabPlan, OfOneNodeHasNoNetwork) {
    const LabPlan plan = plan_of("lab-1x4");
    EXPECT_TRUE(plan.steps.empty());
    const std::string launch = line_of(launch_command(plan, "/labs/t", {"true"}));
    EXPECT_NE(launch.find("-np 4 "), launch.npos);
    EXPECT_NE(launch.find("btl self,vader -"), launch.npos) << launch;
}

TEST(LabPlan, LaunchesRanksNodeByNodeAndOnlyInTheSubnet) {
    const std::string launch =
        line_of(launch_command(plan_of("lab-2x3-1g"), "/labs/t", {"program", "--option"}));
    for (const std::string part :
         {"-np 6 ", "--map-by slot", "--host 10.1.2.1:3,10.1.2.2:3", "plm_rsh_agent /labs/t/shell",
          "btl_tcp_if_include 10.1.2.0/24", "oob_tcp_if_include 10.1.2.0/24",
          "-x ZEROPROOF_TOPOLOGY", "-x ZEROPROOF_LAB"})
        EXPECT_NE(launch.find(part), launch.npos) << part;
    EXPECT_TRUE(launch.ends_with(" program --option"));
}

TEST(LabCluster, TakesOverridesAndKnowsNothingOfSharedMemory) {
    const Cluster cluster = lab_cluster(load_cluster("ethernet-4x8-10g"), {0.5, 20});
    EXPECT_EQ(cluster.topology.name, "ethernet-4x8-10g at 0.5 Gbit/s with 20 us");
    EXPECT_EQ(cluster.topology.link(LinkClass::inter_node).bandwidth_bytes_per_s, 62.5e6);
    EXPECT_DOUBLE_EQ(cluster.topology.link(LinkClass::inter_node).latency_s.value(), 20e-6);
    EXPECT_FALSE(cluster.topology.link(LinkClass::intra_node).bandwidth_bytes_per_s);
}

TEST(LabCluster, RefusesWhatItCannotShape) {
    Cluster cluster = load_cluster("lab-2x2-1g");
    auto& link = cluster.topology.links[static_cast<std::size_t>(LinkClass::inter_node)];
    EXPECT_EQ(why_refused(cluster), "accepted");
    link.sharing = Sharing::rank;
    EXPECT_NE(why_refused(cluster).find("each of the 2 ranks of a node has a link of its own"),
              std::string::npos);
    cluster.topology.ranks_per_node = 1;
    EXPECT_EQ(why_refused(cluster), "accepted");
    link.bandwidth_bytes_per_s = {};
    EXPECT_NE(why_refused(cluster).find("not known: give --bandwidth"), std::string::npos);
    EXPECT_EQ(why_refused(cluster, {1, {}}), "accepted");
    for (const double gbit_per_s : {-1.0, 0.0, 1e-6, 100.0})
        EXPECT_NE(why_refused(cluster, {gbit_per_s, {}}).find("is outside of"), std::string::npos);
    EXPECT_NE(why_refused(cluster, {1, 1e9}).find("a latency above"), std::string::npos);
    EXPECT_NE(why_refused(load_cluster("dgx2-25")).find("800 Gbit/s"), std::string::npos);
    EXPECT_NE(why_refused(load_cluster("dgx2-96"), {1, {}}).find("more than a lab has"),
              std::string::npos);
    EXPECT_NE(why_refused(load_cluster("lab-1x4"), {1, {}}).find("no links"), std::string::npos);
}

TEST(LabPlan, RefusesNamesThatNoHostCanHave) {
    const Cluster cluster = lab_cluster(load_cluster("lab-2x2-1g"), {});
    for (const std::string& name : {std::string(), std::string("-a"), std::string("a/b"),
                                    std::string("a b"), std::string("../x"), std::string(33, 'a')})
        EXPECT_THROW(plan_lab(name, cluster, kSubnet), LabRefused) << name;
}

}  // namespace
}  // namespace zeroproof::harness
