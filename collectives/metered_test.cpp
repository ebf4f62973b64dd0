#include "collectives/metered.h"

#include <array>
#include <vector>

#include "collectives/test_support.h"

namespace zeroproof::collectives {
namespace {

Request start_sum(Communicator& group, std::array<float, 4>& values) {
    return group.all_reduce(bytes(values), bytes(values), 4, DType::fp32, Reduction::sum);
}

TEST(Metered, WritesDownWhatAnOperationIsAndForwardsIt) {
    run_ranks(3, [](Communicator& world) {
        memory::Ledger ledger;
        Meter meter(ledger);
        MeteredCommunicator metered(std::make_unique<Borrowed>(world), Traffic::gradient, meter);
        EXPECT_EQ(metered.rank(), world.rank());
        EXPECT_EQ(metered.size(), 3);

        std::array<float, 4> values{1, 2, 3, 4};
        ledger.enter(memory::Phase::backward);
        start_sum(metered, values).wait();
        EXPECT_EQ(values, (std::array<float, 4>{3, 6, 9, 12}));

        ledger.enter(memory::Phase::step);
        std::array<std::int32_t, 6> all{};
        const std::array<std::int32_t, 2> mine{world.rank(), 7};
        metered.all_gather(bytes(mine), bytes(all), 2, DType::int32).wait();
        metered.broadcast(bytes(all), 6, DType::int32, 1).wait();

        const auto& records = meter.records();
        ASSERT_EQ(records.size(), 3u);
        for (std::size_t i = 0; i < records.size(); ++i) {
            EXPECT_EQ(records[i].rank, world.rank());
            EXPECT_EQ(records[i].sequence, i);
            EXPECT_EQ(records[i].group, (std::vector{0, 1, 2}));
            EXPECT_EQ(records[i].traffic, Traffic::gradient);
            EXPECT_TRUE(records[i].awaited);
            EXPECT_LE(records[i].issued, records[i].ended);
        }
        EXPECT_EQ(records[0].op, Op::all_reduce);
        EXPECT_EQ(records[0].type, DType::fp32);
        EXPECT_EQ(records[0].reduction, Reduction::sum);
        EXPECT_EQ(records[0].in_elements, 4u);
        EXPECT_EQ(records[0].out_elements, 4u);
        EXPECT_EQ(records[0].peer, -1);
        EXPECT_EQ(records[0].phase, memory::Phase::backward);
        EXPECT_EQ(records[1].op, Op::all_gather);
        EXPECT_EQ(records[1].type, DType::int32);
        EXPECT_EQ(records[1].reduction, Reduction::none);
        EXPECT_EQ(records[1].in_elements, 2u);
        EXPECT_EQ(records[1].out_elements, 6u);
        EXPECT_EQ(records[1].phase, memory::Phase::step);
        EXPECT_EQ(records[2].op, Op::broadcast);
        EXPECT_EQ(records[2].peer, 1);
    });
}

TEST(Metered, SaysWhenAnOperationEndedAndWhetherItWasWaitedFor) {
    run_ranks(2, [](Communicator& world) {
        const memory::Ledger ledger;
        Meter meter(ledger);
        MeteredCommunicator metered(std::make_unique<Borrowed>(world), Traffic::control, meter);
        std::array<float, 4> first{};
        std::array<float, 4> second{};
        std::array<float, 4> dropped{1, 1, 1, 1};
        {
            auto one = start_sum(metered, first);
            auto two = start_sum(metered, second);
            const auto three = start_sum(metered, dropped);
            EXPECT_FALSE(meter.records()[0].awaited);
            two.wait();
            one.wait();
        }
        const auto& records = meter.records();
        ASSERT_EQ(records.size(), 3u);
        // In the order of the starts, though they ended in another.
        EXPECT_LE(records[0].issued, records[1].issued);
        EXPECT_GE(records[0].ended, records[1].ended);
        EXPECT_TRUE(records[0].awaited && records[1].awaited);
        EXPECT_FALSE(records[2].awaited);
        EXPECT_EQ(dropped[0], 2);  // it ended nevertheless
    });
}

TEST(Metered, GroupsOfASplitWriteToTheSameMeterInSequencesOfTheirOwn) {
    run_ranks(4, [](Communicator& world) {
        const memory::Ledger ledger;
        Meter meter(ledger);
        MeteredCommunicator metered(std::make_unique<Borrowed>(world), Traffic::parameter, meter);
        std::array<float, 4> values{};
        start_sum(metered, values).wait();
        const auto pair = metered.split(world.rank() % 2, 0);
        EXPECT_EQ(metered.split(-1, 0), nullptr);
        start_sum(*pair, values).wait();
        start_sum(metered, values).wait();

        const auto& records = meter.records();
        ASSERT_EQ(records.size(), 3u);  // what a split itself exchanges is no traffic
        EXPECT_EQ(records[1].group, (std::vector{world.rank() % 2, world.rank() % 2 + 2}));
        EXPECT_EQ(records[1].rank, world.rank());
        EXPECT_EQ(records[1].traffic, Traffic::parameter);
        EXPECT_EQ(records[1].sequence, 0u);
        EXPECT_EQ(records[2].sequence, 1u);
    });
}

TEST(Metered, AnOperationThatFailsIsWrittenDownToo) {
    const memory::Ledger ledger;
    Meter meter(ledger);
    ThreadWorld ranks(2, kNever);
    const auto failure = ranks.run([&](Communicator& world) {
        if (world.rank() == 1) return;
        MeteredCommunicator metered(std::make_unique<Borrowed>(world), Traffic::control, meter);
        std::array<float, 4> values{};
        start_sum(metered, values).wait();
    });
    ASSERT_NE(failure, nullptr);
    ASSERT_EQ(meter.records().size(), 1u);
    EXPECT_EQ(meter.records()[0].op, Op::all_reduce);
    EXPECT_FALSE(meter.records()[0].awaited);
}

}  // namespace
}  // namespace zeroproof::collectives
