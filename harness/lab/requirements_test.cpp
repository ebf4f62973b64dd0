#include "harness/lab/requirements.h"

#include <gtest/gtest.h>

namespace zeroproof::harness {
namespace {

constexpr const char* kRoutes =
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
    "eth0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
    "eth0\t0000D50A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n";  // 10.213.0.0/16

TEST(LabRequirements, ReadRoutesButForTheDefaultOne) {
    const std::vector<Network> routes = routes_in(kRoutes);
    ASSERT_EQ(routes.size(), 1U);
    EXPECT_EQ(routes[0].address, 0x0AD50000U);
    EXPECT_EQ(routes[0].length, 16);
}

TEST(LabRequirements, ChooseASubnetThatTheMachineDoesNotReach) {
    EXPECT_EQ(choose_subnet({}).text(), "10.213.87.0/24");
    EXPECT_NE(choose_subnet(routes_in(kRoutes)).text(), "10.213.87.0/24");
    const Network address_within{0x0AD55701, 32};
    EXPECT_NE(choose_subnet({address_within}).text(), "10.213.87.0/24");
    const Network beside{0x0AD55800, 24};
    EXPECT_EQ(choose_subnet({beside}).text(), "10.213.87.0/24");
    EXPECT_THROW(choose_subnet({{0x0A000000, 8}, {0xAC100000, 12}, {0xC0A80000, 16}}), LabRefused);
}

}  // namespace
}  // namespace zeroproof::harness
