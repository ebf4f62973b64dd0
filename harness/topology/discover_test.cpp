#include "harness/topology/discover.h"

#include <gtest/gtest.h>

#include <fstream>

#include "harness/temporary_folder.h"

namespace zeroproof::harness {
namespace {

using collectives::LinkClass;
using collectives::Topology;

class Discover : public testing::Test {
  protected:
    void adapter(const std::string& name, const std::string& speed, bool is_hardware) {
        const auto folder = root_.path() / "class" / "net" / name;
        std::filesystem::create_directories(folder);
        std::ofstream(folder / "speed") << speed << '\n';
        if (is_hardware) std::filesystem::create_directory(folder / "device");
    }
    std::optional<double> bytes_per_s_between_nodes() const {
        return discover(2, 4, root_.path()).link(LinkClass::inter_node).bandwidth_bytes_per_s;
    }

    TemporaryFolder root_;
};

TEST_F(Discover, TakesTheSpeedOfTheOnlyAdapter) {
    adapter("lo", "", false);
    adapter("docker0", "10000", false);
    adapter("eth1", "-1", true);  // without a cable
    adapter("eth0", "25000", true);
    EXPECT_EQ(bytes_per_s_between_nodes(), 25e9 / 8);
    const Topology topology = discover(2, 4, root_.path());
    EXPECT_EQ(topology.nodes, 2);
    EXPECT_EQ(topology.ranks_per_node, 4);
    EXPECT_NE(topology.name, "");
    EXPECT_EQ(topology.link(LinkClass::inter_node).sharing, collectives::Sharing::node);
    EXPECT_FALSE(topology.link(LinkClass::inter_node).latency_s);
    EXPECT_FALSE(topology.link(LinkClass::intra_node).bandwidth_bytes_per_s);
}

TEST_F(Discover, DoesNotGuessAmongSeveralOrNone) {
    EXPECT_FALSE(bytes_per_s_between_nodes());
    adapter("eth0", "1000", true);
    adapter("ib0", "200000", true);
    EXPECT_FALSE(bytes_per_s_between_nodes());
}

TEST_F(Discover, KnowsNoLinkBetweenOneNodeAndItself) {
    adapter("eth0", "1000", true);
    EXPECT_FALSE(discover(1, 4, root_.path()).link(LinkClass::inter_node).bandwidth_bytes_per_s);
}

}  // namespace
}  // namespace zeroproof::harness
