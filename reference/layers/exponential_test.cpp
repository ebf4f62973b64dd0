// The vectorisable exponential against the C library's in double precision.
#include "reference/layers/exponential.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace zeroproof::reference {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Of the exact value, in units in the last place of the float next to it. That value is right to
// 2^-52 of itself, which is nothing beside one unit.
double error_in_units(float x) {
    const double exact = std::exp(double{x});
    int exponent = 0;
    std::frexp(exact, &exponent);
    return std::abs(double{exponential(x)} - exact) / std::ldexp(1.0, exponent - 24);
}

// The largest error of some 300'000 floats from 2^-30 to `limit`, of all magnitudes, and of as many
// negative ones.
double worst_error_up_to(float limit) {
    constexpr std::uint32_t kStep = 997;
    double worst = 0;
    for (std::uint32_t bits = std::bit_cast<std::uint32_t>(0x1p-30f);
         bits <= std::bit_cast<std::uint32_t>(limit); bits += kStep)
        for (const float x : {std::bit_cast<float>(bits), -std::bit_cast<float>(bits)})
            worst = std::max(worst, error_in_units(x));
    return worst;
}

// Catches a wrong coefficient or a missing term of the series: up to half of ln 2 nothing else is
// at work.
TEST(Exponential, SeriesIsWithinTwoUnits) {
    EXPECT_LE(worst_error_up_to(0.34f), 2);
}

// Catches a reduction to the series' range that loses digits: ln 2 is taken off in two parts. Of
// all floats of the range, each of them tried once, the worst is the one here, by 1.221 units.
TEST(Exponential, IsWithinTwoUnitsOverItsWholeRange) {
    EXPECT_NEAR(error_in_units(59.2652245f), 1.221, 0.001);
    for (const float x : {-87.0f, -86.99999f, 87.99999f, 88.0f})
        EXPECT_LE(error_in_units(x), 2) << x;
    EXPECT_LE(worst_error_up_to(87.0f), 2);
}

// Catches an exponent that is lost at the ends of the range.
TEST(Exponential, ScaleIsRightAtBothEnds) {
    EXPECT_GT(exponential(-87.0f), std::numeric_limits<float>::min());
    EXPECT_LT(exponential(88.0f), std::numeric_limits<float>::max());
}

TEST(Exponential, OfZeroIsOne) {
    EXPECT_EQ(exponential(0.0f), 1);
    EXPECT_EQ(exponential(-0.0f), 1);
    EXPECT_EQ(exponential(0x1p-40f), 1);
    EXPECT_EQ(exponential(-0x1p-40f), 1);
    EXPECT_EQ(exponential(std::numeric_limits<float>::denorm_min()), 1);
}

// A masked score is minus infinity: its probability is nothing, and no NaN.
TEST(Exponential, BelowTheRangeIsZero) {
    for (const float x : {std::nextafter(-87.0f, -kInfinity), -87.5f, -104.0f, -1e4f, -1e38f,
                          std::numeric_limits<float>::lowest(), -kInfinity})
        EXPECT_EQ(exponential(x), 0) << x;
}

// Above the range it stays where it was, so that 1 / (1 + e^x) goes to zero and is no NaN.
TEST(Exponential, AboveTheRangeGrowsNoMore) {
    for (const float x : {std::nextafter(88.0f, kInfinity), 89.0f, 1e4f, 1e38f,
                          std::numeric_limits<float>::max(), kInfinity})
        EXPECT_EQ(exponential(x), exponential(88.0f)) << x;
}

// A step of 2^-10 is a factor of 1 + 2^-10 and far above any error. Catches a jump where the number
// of powers of two changes, and at the ends.
TEST(Exponential, Grows) {
    for (float x = -90; x < 90; x += 0x1p-10f) {
        const float next = x + 0x1p-10f;
        ASSERT_GE(exponential(next), exponential(x)) << x;
        if (x >= -87 && next <= 88) {
            ASSERT_NEAR(double{exponential(next)} / double{exponential(x)}, std::exp(0x1p-10), 1e-4)
                << x;
        }
    }
}

TEST(Exponential, InDoublePrecisionIsTheCLibrarys) {
    for (const double x : {-745.2, -700.0, -1.0, 0.0, 0.5, 700.0})
        EXPECT_EQ(exponential(x), std::exp(x));
}

}  // namespace
}  // namespace zeroproof::reference
