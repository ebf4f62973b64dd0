#include "harness/bench/mann_whitney.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>

namespace zeroproof::harness {
namespace {

double pairs_won(const std::vector<double>& a, const std::vector<double>& b) {
    double won = 0;
    for (const double x : a)
        for (const double y : b) won += x > y ? 1 : x == y ? 0.5 : 0;
    return won;
}

// By trying all ways to deal the values out again.
double enumerated_p(const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> all = a;
    all.insert(all.end(), b.begin(), b.end());
    const double seen = pairs_won(a, b);
    double ways = 0;
    double as_far = 0;
    for (unsigned chosen = 0; chosen < 1u << all.size(); ++chosen) {
        std::vector<double> first, second;
        for (std::size_t i = 0; i < all.size(); ++i)
            (chosen >> i & 1 ? first : second).push_back(all[i]);
        if (first.size() != a.size()) continue;
        ways += 1;
        if (pairs_won(first, second) >= seen) as_far += 1;
    }
    return as_far / ways;
}

TEST(MannWhitney, IsExactForSmallSamplesWithoutTies) {
    std::mt19937 random(1);
    for (std::size_t a = 1; a <= 7; ++a)
        for (std::size_t b = 1; b <= 7; ++b) {
            std::vector<double> all(a + b);
            for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<double>(i * i) + 1;
            std::ranges::shuffle(all, random);
            const std::vector<double> first(all.begin(), all.begin() + std::ptrdiff_t(a));
            const std::vector<double> second(all.begin() + std::ptrdiff_t(a), all.end());
            EXPECT_NEAR(mann_whitney_p(first, second), enumerated_p(first, second), 1e-12)
                << a << " and " << b;
        }
}

TEST(MannWhitney, KnownValues) {
    const std::vector<double> low = {1, 2, 3, 4, 5};
    const std::vector<double> high = {6, 7, 8, 9, 10};
    EXPECT_DOUBLE_EQ(mann_whitney_p(high, low), 1.0 / 252);
    EXPECT_DOUBLE_EQ(mann_whitney_p(low, high), 1);
    EXPECT_DOUBLE_EQ(smallest_mann_whitney_p(5, 5), 1.0 / 252);
    EXPECT_DOUBLE_EQ(smallest_mann_whitney_p(2, 3), 0.1);
}

TEST(MannWhitney, IsExactWhereThereAreTies) {
    const std::vector<double> a = {3, 4, 4, 5, 6, 6, 7, 8};
    const std::vector<double> b = {1, 2, 3, 3, 4, 5, 5, 6};
    EXPECT_NEAR(mann_whitney_p(a, b), enumerated_p(a, b), 1e-12);
    EXPECT_NEAR(mann_whitney_p(b, a), enumerated_p(b, a), 1e-12);
    const std::vector<double> equal(8, 2.0);
    EXPECT_EQ(mann_whitney_p(equal, equal), 1);
}

TEST(MannWhitney, BothWaysAgreeWhereOneEndsAndTheOtherBegins) {
    std::mt19937 random(2);
    std::normal_distribution<double> noise;
    std::vector<double> a(30), b(30);
    for (double& x : a) x = noise(random) + 0.5;
    for (double& x : b) x = noise(random);
    const double exact = mann_whitney_p(a, b);
    a.push_back(a.front() + 1e-9);  // one too many to be exact
    EXPECT_NEAR(mann_whitney_p(a, b), exact, 0.01);
}

TEST(MannWhitney, AlarmsFalselyNoMoreOftenThanItSays) {
    std::mt19937 random(3);
    std::lognormal_distribution<double> noise(0, 0.3);
    int below = 0;
    constexpr int kTrials = 4000;
    for (int trial = 0; trial < kTrials; ++trial) {
        std::vector<double> a(8), b(10);
        for (double& x : a) x = noise(random);
        for (double& x : b) x = noise(random);
        below += mann_whitney_p(a, b) <= 0.05;
    }
    EXPECT_LT(below, kTrials * 0.06);
    EXPECT_GT(below, kTrials * 0.03);
}

TEST(MannWhitney, TakesNoEmptySample) {
    EXPECT_THROW(mann_whitney_p({}, std::vector<double>{1}), std::invalid_argument);
    EXPECT_THROW(hodges_lehmann_shift(std::vector<double>{1}, {}), std::invalid_argument);
}

TEST(Holm, MultipliesByHowManyAreLeftAndNeverFalls) {
    const std::vector<double> adjusted =
        holm_adjusted(std::vector<double>{0.01, 0.04, 0.03, 0.005});
    ASSERT_EQ(adjusted.size(), 4u);
    EXPECT_DOUBLE_EQ(adjusted[3], 0.02);
    EXPECT_DOUBLE_EQ(adjusted[0], 0.03);
    EXPECT_DOUBLE_EQ(adjusted[2], 0.06);
    EXPECT_DOUBLE_EQ(adjusted[1], 0.06);
    EXPECT_TRUE(holm_adjusted({}).empty());
}

TEST(HodgesLehmann, IsTheMedianOfAllDifferences) {
    EXPECT_DOUBLE_EQ(
        hodges_lehmann_shift(std::vector<double>{1, 2, 3}, std::vector<double>{11, 12, 13}), 10);
    EXPECT_DOUBLE_EQ(hodges_lehmann_shift(std::vector<double>{1, 5}, std::vector<double>{2}), -1);
}

}  // namespace
}  // namespace zeroproof::harness
