// Dropout by counting: how much is dropped, and that nothing but the element's place decides.
#include "reference/layers/dropout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace zeroproof::reference {
namespace {

constexpr std::size_t kMany = 200'000;

// What is left of elements [first, first + count), all of them 1.
template <typename T = float>
std::vector<T> factors(const Dropout& dropout, std::size_t count, std::uint64_t first = 0) {
    std::vector<T> values(count, 1);
    dropout.apply(first, std::span(values));
    return values;
}

double kept_fraction(const std::vector<float>& values) {
    const auto dropped = std::ranges::count(values, 0.0f);
    return 1 - static_cast<double>(dropped) / static_cast<double>(values.size());
}

// Catches a probability that is taken for that of keeping, or compared with numbers of another
// range. Of n independent elements the fraction deviates by sqrt(p (1 - p) / n); five times that is
// exceeded once in two million.
TEST(Dropout, KeepsOneInSoManyAsItSays) {
    for (const float p : {0.1f, 0.25f, 0.5f, 0.9f, 0.001f}) {
        const double q = double{p};
        EXPECT_NEAR(kept_fraction(factors({.probability = p}, kMany)), 1 - q,
                    5 * std::sqrt(q * (1 - q) / static_cast<double>(kMany)))
            << p;
    }
}

// The mean of what is kept is that of what was there. Catches a scale of 1 - p, of p, or none.
TEST(Dropout, ScalesWhatItKeeps) {
    for (const float p : {0.1f, 0.25f, 0.5f, 0.9f}) {
        for (const float value : factors<float>({.probability = p}, 1000))
            EXPECT_TRUE(value == 0 || value == 1 / (1 - p)) << value << " for " << p;
        for (const double value : factors<double>({.probability = p}, 1000))
            EXPECT_TRUE(value == 0 || value == 1 / (1 - double{p})) << value << " for " << p;
    }
}

TEST(Dropout, MultipliesTheElements) {
    std::vector<float> values;
    for (int i = 0; i < 100; ++i) values.push_back(static_cast<float>(i - 50));
    const std::vector<float> before = values;
    const Dropout dropout{.probability = 0.5f, .seed = 4};
    dropout.apply(20, std::span(values));
    const std::vector<float> expected = factors(dropout, 100, 20);
    for (std::size_t i = 0; i < values.size(); ++i)
        EXPECT_EQ(values[i], before[i] * expected[i]) << i;
}

TEST(Dropout, OfProbabilityZeroChangesNothing) {
    const std::vector<float> values = factors({.probability = 0, .seed = 3}, 1000);
    EXPECT_EQ(std::ranges::count(values, 1.0f), 1000);
}

// Whoever holds a part of a tensor, or recomputes it, draws the same. Catches numbers that depend
// on where a call begins: four come out of one counter.
TEST(Dropout, IsTheSameHoweverTheRangeIsSplit) {
    const Dropout dropout{.probability = 0.5f, .seed = 9, .sample = 3, .layer = 2};
    const std::vector<float> whole = factors(dropout, 1000);
    for (const std::size_t part : {1u, 2u, 3u, 4u, 5u, 7u, 64u, 999u})
        for (std::size_t first = 0; first < 1000; first += part) {
            const std::size_t count = std::min<std::size_t>(part, 1000 - first);
            const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(first);
            ASSERT_EQ(factors(dropout, count, first),
                      std::vector(begin, begin + static_cast<std::ptrdiff_t>(count)))
                << first << " of parts of " << part;
        }
    EXPECT_TRUE(factors(dropout, 0, 5).empty());
}

// Single precision and double drop the same elements.
TEST(Dropout, IsTheSameInEachType) {
    const Dropout dropout{.probability = 0.3f, .seed = 9, .site = DropoutSite::attention};
    const std::vector<float> single = factors<float>(dropout, 1000);
    const std::vector<double> twice = factors<double>(dropout, 1000);
    for (std::size_t i = 0; i < 1000; ++i) EXPECT_EQ(single[i] == 0, twice[i] == 0) << i;
}

// Catches a key or a counter that leaves one of these out, or lets two of them meet (layer 1 of one
// site with layer 0 of another): such masks would be equal. Two independent ones agree in p^2 + (1
// - p)^2 of the elements; five deviations of that fraction, as above.
TEST(Dropout, DiffersBySiteLayerSampleAndSeed) {
    std::vector<Dropout> all;
    const Dropout first{.probability = 0.3f, .seed = 1, .sample = 1, .layer = 1};
    for (std::uint32_t site = 0; site < 4; ++site)
        for (const std::uint32_t layer : {0u, 1u, 2u, 4u}) {
            all.push_back(first);
            all.back().site = static_cast<DropoutSite>(site);
            all.back().layer = layer;
        }
    for (const std::uint64_t other : {0ull, 2ull, 1ull << 32, 1ull << 40}) {
        all.push_back(first);
        all.back().seed = other;
        all.push_back(first);
        all.back().sample = other;
    }
    constexpr std::size_t kCount = 20'000;
    constexpr double kAgreeing = 0.3 * 0.3 + 0.7 * 0.7;
    const double bound = 5 * std::sqrt(kAgreeing * (1 - kAgreeing) / double{kCount});
    std::vector<std::vector<float>> masks;
    for (const Dropout& dropout : all) masks.push_back(factors(dropout, kCount));
    for (std::size_t a = 0; a < masks.size(); ++a)
        for (std::size_t b = 0; b < a; ++b) {
            std::size_t agreeing = 0;
            for (std::size_t i = 0; i < kCount; ++i) agreeing += masks[a][i] == masks[b][i];
            EXPECT_NEAR(static_cast<double>(agreeing) / double{kCount}, kAgreeing, bound)
                << a << " and " << b;
        }
}

// Elements far into a tensor have numbers of their own: sequence^2 times heads is soon beyond 2^32.
TEST(Dropout, DiffersFarIntoATensor) {
    const Dropout dropout{.probability = 0.5f};
    const std::vector<float> near = factors(dropout, 1000);
    for (const std::uint64_t first : {1000ull, 1ull << 31, 1ull << 32, 1ull << 33})
        EXPECT_NE(factors(dropout, 1000, first), near) << first;
}

}  // namespace
}  // namespace zeroproof::reference
