#include "collectives/cost_model.h"

#include <gtest/gtest.h>

#include <vector>

namespace zeroproof::collectives {
namespace {

Topology two_nodes_of_four() {
    Topology topology{.name = "2x4", .nodes = 2, .ranks_per_node = 4, .links = {}};
    topology.links[0] = {
        .bandwidth_bytes_per_s = 1e10, .latency_s = 1e-6, .sharing = Sharing::rank};
    topology.links[1] = {.bandwidth_bytes_per_s = 1e8, .latency_s = 5e-5, .sharing = Sharing::node};
    return topology;
}

LinkLoad load(const char* algorithm, Op op, std::size_t elements) {
    return load_of(*find_algorithm(algorithm, op),
                   {.ranks = 8, .ranks_per_node = 4, .root = 0, .elements = elements}, 4,
                   two_nodes_of_four());
}

TEST(LinkLoad, OfAFlatRingIsThatOfTheEdgeBetweenNodes) {
    const LinkLoad seen = load("ring", Op::reduce_scatter, 8000);
    // Seven rounds, in each of which an eighth of the tensor leaves each node.
    EXPECT_EQ(seen.rounds, (std::array<double, 2>{0, 7}));
    EXPECT_EQ(seen.bytes, (std::array<double, 2>{0, 7 * 4000}));
}

TEST(LinkLoad, OfAHierarchicalOneAddsItsLevels) {
    const LinkLoad seen = load("hierarchical", Op::reduce_scatter, 8000);
    // Three rounds within the node, of a quarter each; then one in which each of a node's four
    // ranks sends an eighth.
    EXPECT_EQ(seen.rounds, (std::array<double, 2>{3, 1}));
    EXPECT_EQ(seen.bytes, (std::array<double, 2>{3 * 8000, 16000}));
}

TEST(LinkLoad, WhereBandwidthIsARanksOwnTheBusiestRankCounts) {
    Topology topology = two_nodes_of_four();
    topology.links[1].sharing = Sharing::rank;
    const LinkLoad seen =
        load_of(*find_algorithm("hierarchical", Op::reduce_scatter),
                {.ranks = 8, .ranks_per_node = 4, .root = 0, .elements = 8000}, 4, topology);
    EXPECT_EQ(seen.bytes[1], 4000);
}

// The paper's reason for two levels: 2 x 4, slow links between nodes.
TEST(LinkCosts, SayHowMuchFasterTwoLevelsAre) {
    const auto seconds = [](const char* algorithm) {
        const LinkLoad of = load(algorithm, Op::reduce_scatter, 8'000'000);
        return costs_of(two_nodes_of_four(), of)->seconds(of);
    };
    // (N - 1) / N against (A - 1) / A between nodes, and something within them.
    EXPECT_NEAR(seconds("ring") / seconds("hierarchical"), 7.0 / 4, 0.03);
}

TEST(LinkCosts, AreUnknownWhereTheTopologyDoesNotGiveThem) {
    Topology topology = two_nodes_of_four();
    topology.links[0].bandwidth_bytes_per_s.reset();
    EXPECT_TRUE(costs_of(topology, load("ring", Op::all_gather, 8000)));
    EXPECT_FALSE(costs_of(topology, load("hierarchical", Op::all_gather, 8000)));
}

TEST(Fit, FindsTheCostsThatMadeTheTimes) {
    const LinkCosts truth{.latency_s = {2e-6, 6e-5}, .seconds_per_byte = {1e-10, 8e-9}};
    std::vector<CostSample> samples;
    for (std::size_t elements = 800; elements < 10'000'000; elements *= 4)
        for (const char* algorithm : {"ring", "hierarchical"}) {
            const LinkLoad of = load(algorithm, Op::all_reduce, elements);
            samples.push_back({of, truth.seconds(of)});
        }
    const auto fitted = fit_costs(samples);
    ASSERT_TRUE(fitted);
    for (std::size_t c = 0; c < kLinkClasses; ++c) {
        EXPECT_NEAR(fitted->latency_s[c] / truth.latency_s[c], 1, 1e-6);
        EXPECT_NEAR(fitted->seconds_per_byte[c] / truth.seconds_per_byte[c], 1, 1e-6);
    }
    EXPECT_NEAR(geometric_mean_error(samples, *fitted), 0, 1e-6);
}

TEST(Fit, OfTimesThatAskForANegativeCostTakesZero) {
    // Faster the more bytes there are: no cost of bytes explains that.
    const std::vector<CostSample> samples = {{{{1, 0}, {100, 0}}, 2}, {{{1, 0}, {200, 0}}, 1}};
    const auto fitted = fit_costs(samples);
    ASSERT_TRUE(fitted);
    EXPECT_EQ(fitted->seconds_per_byte[0], 0);
    EXPECT_GT(fitted->latency_s[0], 0);
}

TEST(Fit, OfOneSampleIsNone) {
    EXPECT_FALSE(fit_costs(std::vector<CostSample>{{{{1, 0}, {100, 0}}, 2}}));
}

TEST(GeometricMeanError, CountsTooSlowAndTooFastAlike) {
    const LinkCosts costs{.latency_s = {1, 0}, .seconds_per_byte = {}};
    const std::vector<CostSample> samples = {{{{1, 0}, {}}, 1.1}, {{{1, 0}, {}}, 1 / 1.1}};
    EXPECT_NEAR(geometric_mean_error(samples, costs), 0.1, 1e-12);
}

}  // namespace
}  // namespace zeroproof::collectives
