#include "collectives/thread_world.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <future>
#include <limits>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "collectives/test_support.h"

namespace zeroproof::collectives {
namespace {

Request send(Communicator& group, const float& value, int to) {
    return group.start({Op::send, DType::fp32, Reduction::none,
                        reinterpret_cast<const std::byte*>(&value), nullptr, 1, 0, to});
}

Request receive(Communicator& group, float& value, int from) {
    return group.start({Op::receive, DType::fp32, Reduction::none, nullptr,
                        reinterpret_cast<std::byte*>(&value), 0, 1, from});
}

float sum_over(Communicator& group, float value) {
    const std::array in{value};
    std::array out{0.0f};
    group.all_reduce(bytes(in), bytes(out), 1, DType::fp32, Reduction::sum).wait();
    return out[0];
}

// One element of `type` per rank, reduced over all of them.
double reduce_elements_of(DType type, Reduction reduction, const std::vector<double>& values) {
    std::vector<double> results(values.size());
    run_ranks(static_cast<int>(values.size()), [&](Communicator& world) {
        const auto rank = static_cast<std::size_t>(world.rank());
        std::array<std::byte, 8> memory{};
        memory::store_element(type, memory.data(), 0, values[rank]);
        world.all_reduce(memory.data(), memory.data(), 1, type, reduction).wait();
        results[rank] = memory::load_element(type, memory.data(), 0);
    });
    for (const double result : results)
        EXPECT_EQ(std::memcmp(&result, &results[0], sizeof(double)), 0);
    return results[0];
}

TEST(ThreadWorld, SixteenBitTypesAccumulateInFp32AndRoundOnce) {
    // Each added 1 would be lost on a tie to even if the accumulator had sixteen bits.
    EXPECT_EQ(reduce_elements_of(DType::fp16, Reduction::sum, {2048, 1, 1}), 2050);
    EXPECT_EQ(reduce_elements_of(DType::bf16, Reduction::sum, {256, 1, 1}), 258);
    EXPECT_EQ(reduce_elements_of(DType::fp16, Reduction::mean, {60000, 60000}), 60000);
    EXPECT_EQ(reduce_elements_of(DType::fp16, Reduction::sum, {60000, 60000}),
              std::numeric_limits<double>::infinity());
}

TEST(ThreadWorld, SumsOfIntegersWrapAndTheirMeansTruncateTowardZero) {
    EXPECT_EQ(reduce_elements_of(DType::int8, Reduction::sum, {100, 100}), -56);
    EXPECT_EQ(reduce_elements_of(DType::int8, Reduction::mean, {100, 100}), 100);
    EXPECT_EQ(reduce_elements_of(DType::int32, Reduction::sum, {0x1p30, 0x1p30}), -0x1p31);
    EXPECT_EQ(reduce_elements_of(DType::int64, Reduction::sum, {0x1p62, 0x1p62}), -0x1p63);
    for (const DType type : {DType::int8, DType::int32, DType::int64}) {
        EXPECT_EQ(reduce_elements_of(type, Reduction::mean, {-4, 1}), -1);
        EXPECT_EQ(reduce_elements_of(type, Reduction::mean, {4, -1}), 1);
    }
}

TEST(ThreadWorld, AMaximumOrMinimumOverANaNIsNaN) {
    const double nan = std::nan("");
    for (const DType type : {DType::fp32, DType::fp16, DType::bf16, DType::fp64})
        for (const Reduction reduction : {Reduction::max, Reduction::min})
            for (const auto& values : {std::vector{nan, 1.0, 2.0}, std::vector{1.0, nan, 2.0},
                                       std::vector{1.0, 2.0, nan}})
                EXPECT_TRUE(std::isnan(reduce_elements_of(type, reduction, values)));
}

// The value of such a sum depends on the order of its terms, down to its sign.
TEST(ThreadWorld, SumsAreBitEqualHoweverTheRanksAreTimed) {
    constexpr int kRanks = 12;
    const auto term = [](int rank, std::size_t i) {
        const float terms[] = {1e8f, 1.0f, -1e8f, 3e-3f, 7.7f};
        return terms[(static_cast<std::size_t>(rank) + i) % 5] * (1 + static_cast<float>(i) / 7);
    };
    constexpr std::size_t kCount = 50'000;
    std::vector<float> ascending(kCount, 0);
    std::vector<float> descending(kCount, 0);
    for (std::size_t i = 0; i < kCount; ++i)
        for (int rank = 0; rank < kRanks; ++rank) {
            ascending[i] = rank == 0 ? term(rank, i) : ascending[i] + term(rank, i);
            descending[i] += term(kRanks - 1 - rank, i);
        }
    ASSERT_NE(ascending, descending);

    for (unsigned run = 0; run < 10; ++run)
        run_ranks(kRanks, [&](Communicator& world) {
            std::vector<float> values(kCount);
            for (std::size_t i = 0; i < kCount; ++i) values[i] = term(world.rank(), i);
            std::mt19937 random(run * kRanks + static_cast<unsigned>(world.rank()));
            for (auto delays = random() % 100; delays > 0; --delays) std::this_thread::yield();
            world.all_reduce(bytes(values), bytes(values), kCount, DType::fp32, Reduction::sum)
                .wait();
            EXPECT_EQ(std::memcmp(values.data(), ascending.data(), kCount * sizeof(float)), 0);
        });
}

TEST(ThreadWorld, SendsAndReceivesPassAroundARing) {
    for (const int ranks : {2, 3, 8})
        run_ranks(ranks, [&](Communicator& world) {
            const float mine = static_cast<float>(world.rank());
            float theirs = -1;
            auto to_next = send(world, mine, (world.rank() + 1) % ranks);
            receive(world, theirs, (world.rank() + ranks - 1) % ranks).wait();
            to_next.wait();
            EXPECT_EQ(theirs, (world.rank() + ranks - 1) % ranks);
        });
}

TEST(ThreadWorld, SendsAndReceivesOfAPairAreMatchedInOrder) {
    run_ranks(3, [&](Communicator& world) {
        if (world.rank() == 2) return;
        const int other = 1 - world.rank();
        const std::array out{world.rank() + 0.25f, world.rank() + 0.5f};
        std::array in{0.0f, 0.0f};
        // One starts with sends and the other with receives, and they cross: two pairs.
        std::vector<Request> requests;
        for (const std::size_t i : {0, 1})
            requests.push_back(world.rank() == 0 ? send(world, out[i], other)
                                                 : receive(world, in[i], other));
        for (const std::size_t i : {0, 1})
            requests.push_back(world.rank() == 0 ? receive(world, in[i], other)
                                                 : send(world, out[i], other));
        while (!requests.empty()) {
            requests.back().wait();
            requests.pop_back();
        }
        EXPECT_EQ(in, (std::array{other + 0.25f, other + 0.5f}));
    });
}

TEST(ThreadWorld, SplitsIntoRowsAndColumns) {
    run_ranks(6, [](Communicator& world) {
        const int row = world.rank() / 3;
        const int column = world.rank() % 3;
        const auto rows = world.split(row, column);
        const auto columns = world.split(column, row);
        ASSERT_EQ(rows->size(), 3);
        ASSERT_EQ(columns->size(), 2);
        EXPECT_EQ(rows->rank(), column);
        EXPECT_EQ(columns->rank(), row);
        for (int i = 0; i < 3; ++i)
            EXPECT_EQ(rows->world_ranks()[static_cast<std::size_t>(i)], 3 * row + i);
        for (int i = 0; i < 2; ++i)
            EXPECT_EQ(columns->world_ranks()[static_cast<std::size_t>(i)], column + 3 * i);

        // Groups do not disturb each other, whatever the order in which ranks start on them.
        const std::array in{static_cast<float>(world.rank())};
        std::array by_row{0.0f};
        std::array by_column{0.0f};
        const auto start = [&](Communicator& group, std::array<float, 1>& out) {
            return group.all_reduce(bytes(in), bytes(out), 1, DType::fp32, Reduction::sum);
        };
        Request first = row == 0 ? start(*rows, by_row) : start(*columns, by_column);
        Request second = row == 0 ? start(*columns, by_column) : start(*rows, by_row);
        EXPECT_EQ(sum_over(world, 1), 6);
        first.wait();
        second.wait();
        EXPECT_EQ(by_row[0], 9 * row + 3);
        EXPECT_EQ(by_column[0], 2 * column + 3);
    });
}

TEST(ThreadWorld, SplitRanksByKeyThenRankAndLeavesOutNegativeColours) {
    run_ranks(5, [](Communicator& world) {
        const bool in = world.rank() != 2;
        const auto odd_even = world.split(in ? world.rank() % 2 : -1, -world.rank());
        EXPECT_EQ(odd_even != nullptr, in);
        if (in) {
            const std::vector<int> expected =
                world.rank() % 2 == 0 ? std::vector{4, 0} : std::vector{3, 1};
            EXPECT_TRUE(std::equal(expected.begin(), expected.end(),
                                   odd_even->world_ranks().begin(), odd_even->world_ranks().end()));
            EXPECT_EQ(sum_over(*odd_even, static_cast<float>(world.rank())), 4);
        }
        const auto tied = world.split(0, world.rank() == 4 ? 0 : 1);
        EXPECT_EQ(tied->rank(), (world.rank() + 1) % 5);
        EXPECT_EQ(tied->world_ranks()[0], 4);
        // A group of a group still knows the world.
        const auto inner = tied->split(tied->rank() / 3, 0);
        EXPECT_EQ(inner->world_ranks().back(), tied->rank() / 3 == 0 ? 1 : 3);
        EXPECT_EQ(sum_over(*inner, 1), static_cast<float>(inner->size()));
        // Split alike once more, the group is another one.
        const auto again = tied->split(tied->rank() / 3, 0);
        EXPECT_EQ(sum_over(*again, 2) + sum_over(*inner, 1), static_cast<float>(3 * inner->size()));
    });
}

TEST(ThreadWorld, AnOperationMakesProgressWhileARankDoesNotWait) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{1} << 20}) {
        std::promise<void> promise;
        const std::shared_future<void> one_is_done = promise.get_future();
        run_ranks(3, [&](Communicator& world) {
            std::vector<float> values(count, 1);
            auto request =
                world.all_reduce(bytes(values), bytes(values), count, DType::fp32, Reduction::sum);
            if (world.rank() != 1) one_is_done.wait();
            request.wait();
            if (world.rank() == 1) promise.set_value();
            EXPECT_EQ(values, std::vector<float>(count, 3));
        });
    }
}

TEST(ThreadWorld, AnUnawaitedRequestEndsWithItsOperation) {
    run_ranks(3, [](Communicator& world) {
        std::vector<float> values(1 << 16, 1);
        {
            auto dropped = world.all_reduce(bytes(values), bytes(values), values.size(),
                                            DType::fp32, Reduction::sum);
        }
        EXPECT_EQ(values, std::vector<float>(1 << 16, 3));
    });
}

}  // namespace
}  // namespace zeroproof::collectives
