#include "collectives/record.h"

#include <gtest/gtest.h>

namespace zeroproof::collectives {
namespace {

TEST(Record, NominalElementsAreThoseOfTheZeroPaper) {
    constexpr std::size_t kAll = 120;  // P, over a group of 4
    const struct {
        Op op;
        std::size_t in;
        std::size_t out;
        std::size_t expected;
    } cases[] = {
        {Op::broadcast, kAll, kAll, kAll},
        {Op::reduce, kAll, kAll, kAll},
        {Op::reduce, kAll, 0, kAll},  // off the root
        {Op::all_reduce, kAll, kAll, 2 * kAll},
        {Op::reduce_scatter, kAll, kAll / 4, kAll},
        {Op::all_gather, kAll / 4, kAll, kAll},
        {Op::all_to_all, kAll, kAll, kAll},
        {Op::receive, 0, kAll, 0},
    };
    for (const auto& c : cases) {
        CollectiveRecord record;
        record.op = c.op;
        record.in_elements = c.in;
        record.out_elements = c.out;
        record.group = {0, 3, 5, 6};
        EXPECT_EQ(nominal_elements(record), c.expected) << name_of(c.op);
        EXPECT_EQ(sent_elements_times_ranks(record), 3 * c.expected) << name_of(c.op);
        record.group = {3};
        EXPECT_EQ(nominal_elements(record), 0u) << name_of(c.op);
        EXPECT_EQ(sent_elements_times_ranks(record), 0u) << name_of(c.op);
    }
}

// Section 7: an all-reduce is a reduce-scatter and an all-gather.
TEST(Record, AnAllReduceSendsAsMuchAsItsTwoHalves) {
    CollectiveRecord record;
    record.group = {0, 1, 2};
    record.in_elements = record.out_elements = 9;
    record.op = Op::all_reduce;
    const std::size_t whole = sent_elements_times_ranks(record);
    record.op = Op::reduce_scatter;
    record.out_elements = 3;
    std::size_t halves = sent_elements_times_ranks(record);
    record.op = Op::all_gather;
    record.in_elements = 3;
    record.out_elements = 9;
    halves += sent_elements_times_ranks(record);
    EXPECT_EQ(whole, halves);
    EXPECT_EQ(whole, 3u * 12u);  // 2 (N - 1) / N of 9 elements from each rank, times N
}

TEST(Record, ASendLeavesItsRankWhole) {
    CollectiveRecord record;
    record.op = Op::send;
    record.group = {0, 1, 2};
    record.in_elements = 7;
    EXPECT_EQ(nominal_elements(record), 7u);
    EXPECT_EQ(sent_elements_times_ranks(record), 3u * 7u);
}

TEST(Record, TrafficIsNamed) {
    EXPECT_EQ(name_of(Traffic::gradient), "gradient");
    EXPECT_EQ(name_of(Traffic::parameter), "parameter");
    EXPECT_EQ(name_of(Traffic::control), "control");
}

}  // namespace
}  // namespace zeroproof::collectives
