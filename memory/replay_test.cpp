#include "memory/replay.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace zeroproof::memory {
namespace {

using Kind = AllocationEvent::Kind;

constexpr std::size_t kMiB = std::size_t{1} << 20;

AllocationEvent allocate(std::uint64_t id, std::size_t bytes,
                         Category category = Category::buffer) {
    return {Kind::allocate, id, bytes, category, Phase::forward};
}

AllocationEvent release(std::uint64_t id) {
    return {Kind::release, id, 0, Category::buffer, Phase::forward};
}

std::string message_of_check(const AllocationTrace& trace) {
    try {
        check(trace);
        return "accepted";
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
}

TEST(AllocationTrace, AnIdIsLiveFromItsAllocateToItsRelease) {
    EXPECT_EQ(message_of_check({}), "accepted");
    EXPECT_EQ(message_of_check({{allocate(7, 1), release(7), allocate(7, 2)}}), "accepted");
    EXPECT_EQ(message_of_check({{allocate(7, 1), allocate(8, 1), allocate(7, 1)}}),
              "event 2 allocates id 7, which is live");
    EXPECT_EQ(message_of_check({{allocate(7, 1), release(8)}}),
              "event 1 releases id 8, which is not live");
    EXPECT_EQ(message_of_check({{allocate(7, 0), release(7), release(7)}}),
              "event 2 releases id 7, which is not live");
}

TEST(Replay, RejectsATraceThatCheckRejectsBeforeAnythingElse) {
    // The first event fits nowhere, but the second makes it no trace.
    const AllocationTrace trace{{allocate(1, 5 * kMiB), release(2)}};
    EXPECT_THROW(replay(trace, 0), std::invalid_argument);
    EXPECT_THROW(smallest_capacity(trace), std::invalid_argument);
    const CachingOptions no_blocks{.block_bytes = 0};
    EXPECT_THROW(replay({}, 0, no_blocks), std::invalid_argument);
    EXPECT_THROW(smallest_capacity({}, no_blocks), std::invalid_argument);
}

TEST(Replay, ATraceThatGoesThroughReportsItsPeaks) {
    const AllocationTrace trace{{allocate(1, 100), allocate(2, 12 * kMiB), release(1),
                                 allocate(1, 5 * kMiB), release(2), allocate(3, 0), release(3)}};
    const ReplayResult result = replay(trace, 34 * kMiB);
    EXPECT_TRUE(result.went_through());
    EXPECT_EQ(result.peak_allocated_bytes, 17 * kMiB);
    EXPECT_EQ(result.peak_reserved_bytes, 34 * kMiB);

    const ReplayResult nothing = replay({}, 0);
    EXPECT_TRUE(nothing.went_through());
    EXPECT_EQ(nothing.peak_reserved_bytes, 0u);
}

TEST(Replay, AFailureForWantOfBytesIsNoFragmentation) {
    const AllocationTrace trace{{allocate(1, 12 * kMiB), allocate(2, 12 * kMiB), release(1),
                                 allocate(3, 20 * kMiB - 1), allocate(4, 1)}};
    const ReplayResult result = replay(trace, 30 * kMiB);
    ASSERT_FALSE(result.went_through());
    EXPECT_EQ(result.failure->event, 3u);
    EXPECT_EQ(result.failure->asked_bytes, 20 * kMiB - 1);
    EXPECT_EQ(result.failure->free_bytes, 18 * kMiB);
    EXPECT_EQ(result.failure->reserved_bytes, 12 * kMiB);  // the free segment went back
    EXPECT_EQ(result.failure->largest_free_block_bytes, 0u);
    EXPECT_FALSE(result.failure->fragmentation);
    EXPECT_EQ(result.peak_allocated_bytes, 24 * kMiB);
    EXPECT_EQ(result.peak_reserved_bytes, 24 * kMiB);
    // Bytes that hold the request, but not once it is rounded.
    const AllocationTrace rounded{{allocate(1, 1)}};
    EXPECT_FALSE(replay(rounded, 511).failure->fragmentation);
    EXPECT_TRUE(replay(rounded, 512).failure->fragmentation);
}

// The forward pass of four layers: activations of 9 MiB live to its end, checkpoints of 2 MiB
// beyond it, and then one buffer of 32 MiB is needed.
AllocationTrace checkpoints_among_activations() {
    AllocationTrace trace;
    for (std::uint64_t layer = 0; layer < 4; ++layer) {
        trace.events.push_back(allocate(layer, 9 * kMiB, Category::activation));
        trace.events.push_back(allocate(100 + layer, 2 * kMiB, Category::checkpoint));
    }
    for (std::uint64_t layer = 0; layer < 4; ++layer) trace.events.push_back(release(layer));
    trace.events.push_back(allocate(200, 32 * kMiB, Category::gradient));
    return trace;
}

// With all checkpoints, none of which is released, in one block that is allocated beforehand.
AllocationTrace with_arena(const AllocationTrace& trace) {
    std::size_t arena_bytes = 0;
    AllocationTrace others;
    for (const AllocationEvent& event : trace.events) {
        if (event.category == Category::checkpoint)
            arena_bytes += event.bytes;
        else
            others.events.push_back(event);
    }
    others.events.insert(others.events.begin(), allocate(1000, arena_bytes, Category::checkpoint));
    return others;
}

TEST(Replay, CheckpointsAmongActivationsFragmentTheMemoryAndAnArenaDoesNot) {
    const AllocationTrace trace = checkpoints_among_activations();
    // Three segments of 20 MiB; of activations (A) and checkpoints (C) they hold
    //   A0 C0 A1 | C1 A2 C2 C3, 5 free | A3, 11 free
    // and without the activations only the last one is wholly free.
    const ReplayResult scattered = replay(trace, 60 * kMiB);
    ASSERT_FALSE(scattered.went_through());
    EXPECT_EQ(scattered.failure->event, 12u);
    EXPECT_EQ(scattered.failure->asked_bytes, 32 * kMiB);
    EXPECT_EQ(scattered.failure->free_bytes, 52 * kMiB);
    EXPECT_EQ(scattered.failure->reserved_bytes, 40 * kMiB);
    EXPECT_EQ(scattered.failure->largest_free_block_bytes, 9 * kMiB);
    EXPECT_TRUE(scattered.failure->fragmentation);
    EXPECT_EQ(scattered.peak_allocated_bytes, 44 * kMiB);
    EXPECT_EQ(scattered.peak_reserved_bytes, 60 * kMiB);

    // The arena and A0 | A1 A2 | A3: the last two go back and leave 40 MiB.
    const ReplayResult together = replay(with_arena(trace), 60 * kMiB);
    EXPECT_TRUE(together.went_through());
    EXPECT_EQ(together.peak_reserved_bytes, 60 * kMiB);

    EXPECT_EQ(smallest_capacity(trace), 72 * kMiB);
    EXPECT_EQ(smallest_capacity(with_arena(trace)), 60 * kMiB);
}

TEST(SmallestCapacity, IsTheReservedMemoryWhereNothingIsEverGivenBack) {
    EXPECT_EQ(smallest_capacity({}), 0u);
    EXPECT_EQ(smallest_capacity({{allocate(1, 0)}}), 0u);
    EXPECT_EQ(smallest_capacity({{allocate(1, 1)}}), 2 * kMiB);
    EXPECT_EQ(smallest_capacity({{allocate(1, 1), allocate(2, 5 * kMiB), allocate(3, 13 * kMiB),
                                  allocate(4, 15 * kMiB)}}),
              38 * kMiB);
}

TEST(SmallestCapacity, ALargerCapacityMayFail) {
    const AllocationTrace trace{{allocate(1, 20 * kMiB), release(1), allocate(2, 24 * kMiB),
                                 allocate(3, 10 * kMiB), release(2), allocate(4, 26 * kMiB)}};
    EXPECT_EQ(smallest_capacity(trace), 36 * kMiB);
    EXPECT_FALSE(replay(trace, 36 * kMiB - 1).went_through());
    // The segment of 20 MiB has to go before one of 24 comes, so that id 3 takes one of its own.
    EXPECT_TRUE(replay(trace, 36 * kMiB).went_through());
    EXPECT_TRUE(replay(trace, 44 * kMiB - 1).went_through());
    // It may stay, and id 3 splits it.
    const ReplayResult larger = replay(trace, 44 * kMiB);
    ASSERT_FALSE(larger.went_through());
    EXPECT_EQ(larger.failure->event, 5u);
    EXPECT_TRUE(larger.failure->fragmentation);
    EXPECT_FALSE(replay(trace, 46 * kMiB - 1).went_through());
    EXPECT_TRUE(replay(trace, 46 * kMiB).went_through());
}

TEST(SmallestCapacity, WhatExceedsAnyAddressGoesThroughAtNone) {
    const std::size_t half = Space::kUnlimited / 2 + 1;
    for (const AllocationTrace& trace :
         {AllocationTrace{{allocate(1, Space::kUnlimited)}},
          AllocationTrace{{allocate(1, half), allocate(2, half)}},
          AllocationTrace{{allocate(1, half), allocate(2, 1), allocate(3, half - 2 * kMiB)}}})
        EXPECT_THROW(smallest_capacity(trace), OutOfMemory);
}

AllocationTrace random_trace(std::mt19937& random, std::size_t events, std::size_t most_bytes) {
    AllocationTrace trace;
    std::vector<std::uint64_t> live;
    for (std::size_t i = 0; i < events; ++i) {
        if (!live.empty() && random() % 5 < 2) {
            std::swap(live[random() % live.size()], live.back());
            trace.events.push_back(release(live.back()));
            live.pop_back();
        } else {
            trace.events.push_back(allocate(i, 1 + random() % most_bytes));
            live.push_back(i);
        }
    }
    return trace;
}

TEST(SmallestCapacity, IsTheFirstOfAllCapacitiesThatGoesThrough) {
    const CachingOptions tiny{1, 1, 2, 4, 8, 1};
    std::mt19937 random(20240612);
    int not_monotone = 0;
    for (int round = 0; round < 1000; ++round) {
        const AllocationTrace trace = random_trace(random, 10 + random() % 30, 12);
        const std::size_t enough = replay(trace, Space::kUnlimited, tiny).peak_reserved_bytes;
        std::size_t first = enough;
        bool failed_above = false;
        for (std::size_t capacity = enough; capacity-- > 0;) {
            if (replay(trace, capacity, tiny).went_through())
                first = capacity;
            else
                failed_above = true;
            not_monotone += failed_above && first == capacity;
        }
        ASSERT_EQ(smallest_capacity(trace, tiny), first) << "round " << round;
    }
    EXPECT_GT(not_monotone, 10);  // so that a bisection would not have done
}

TEST(Replay, ALongTraceGoesThroughAtItsSmallestCapacity) {
    std::mt19937 random(20240613);
    const AllocationTrace trace = random_trace(random, 20000, 4 * kMiB);
    const std::size_t capacity_bytes = smallest_capacity(trace);
    EXPECT_TRUE(replay(trace, capacity_bytes).went_through());
    EXPECT_FALSE(replay(trace, capacity_bytes - 1).went_through());
}

}  // namespace
}  // namespace zeroproof::memory
