#include "harness/bench/bench_record.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace zeroproof::harness {
namespace {

TEST(BenchRecord, MedianIsTheMiddleOrTheMeanOfTheTwoInTheMiddle) {
    Timing timing;
    timing.seconds = {5, 1, 3};
    EXPECT_EQ(timing.median_seconds(), 3);
    EXPECT_EQ(timing.lowest_seconds(), 1);
    EXPECT_EQ(timing.highest_seconds(), 5);
    timing.seconds = {4, 1, 8, 2};
    EXPECT_EQ(timing.median_seconds(), 3);
}

TEST(BenchRecord, WithoutRepeatsThereIsNoTime) {
    EXPECT_THROW(Timing().median_seconds(), std::logic_error);
    EXPECT_THROW(Timing().lowest_seconds(), std::logic_error);
    EXPECT_THROW(Timing().highest_seconds(), std::logic_error);
}

TEST(BenchRecord, BusBandwidthIsTheFactorTimesSizeByTime) {
    OperationResult result;
    result.bytes = 1000;
    result.timing.seconds = {0.5, 2, 0.1};
    result.bus_factor = 1.5;
    EXPECT_EQ(result.algorithm_bandwidth_bytes_per_s(), 2000);
    EXPECT_EQ(result.bus_bandwidth_bytes_per_s(), 3000);
}

}  // namespace
}  // namespace zeroproof::harness
