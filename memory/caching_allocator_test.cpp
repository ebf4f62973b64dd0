#include "memory/caching_allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

namespace zeroproof::memory {
namespace {

using Address = CachingAllocator::Address;
using Pool = CachingAllocator::Pool;

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;
// Small enough to try every request.
constexpr CachingOptions kTiny{2, 8, 16, 40, 80, 16};

TEST(CachingAllocator, RequestsAreRoundedUpToBlocks) {
    CachingAllocator allocator(4 * kMiB);
    std::size_t allocated = 0;
    const struct {
        std::size_t asked;
        std::size_t taken;
    } cases[] = {{1, 512}, {512, 512}, {513, 1024}, {4000, 4096}};
    for (const auto& c : cases) {
        EXPECT_EQ(allocator.rounded_bytes(c.asked), c.taken);
        EXPECT_EQ(allocator.allocate(c.asked), (Address{1, allocated})) << c.asked;
        allocated += c.taken;
        EXPECT_EQ(allocator.allocated_bytes(), allocated);
        EXPECT_EQ(allocator.free_bytes(), 4 * kMiB - allocated);
    }
    EXPECT_EQ(allocator.reserved_bytes(), 2 * kMiB);
}

TEST(CachingAllocator, NoBytesTakeNothing) {
    CachingAllocator allocator(0);
    const Address nowhere = allocator.allocate(0);
    EXPECT_EQ(nowhere, Address{});
    allocator.release(nowhere);
    EXPECT_EQ(allocator.reserved_bytes(), 0u);
}

TEST(CachingAllocator, TheRequestDecidesThePoolAndTheSizeOfTheSegment) {
    const struct {
        std::size_t asked;
        Pool pool;
        std::size_t segment;
    } cases[] = {
        {1, Pool::small, 2 * kMiB},
        {kMiB, Pool::small, 2 * kMiB},
        {kMiB + 1, Pool::large, 20 * kMiB},
        {10 * kMiB - 512, Pool::large, 20 * kMiB},
        // Rounded to 10 MiB, which is no longer below.
        {10 * kMiB - 511, Pool::large, 10 * kMiB},
        {10 * kMiB, Pool::large, 10 * kMiB},
        {10 * kMiB + 1, Pool::large, 12 * kMiB},
        {20 * kMiB, Pool::large, 20 * kMiB},
        {33 * kMiB, Pool::large, 34 * kMiB},
    };
    for (const auto& c : cases) {
        CachingAllocator allocator(64 * kMiB);
        allocator.allocate(c.asked);
        ASSERT_EQ(allocator.segments().size(), 1u);
        EXPECT_EQ(allocator.segments().at(1).pool, c.pool) << c.asked;
        EXPECT_EQ(allocator.pool_of(c.asked), c.pool) << c.asked;
        EXPECT_EQ(allocator.segments().at(1).bytes, c.segment) << c.asked;
        EXPECT_EQ(allocator.reserved_bytes(), c.segment) << c.asked;
    }
}

TEST(CachingAllocator, APoolDoesNotServeTheOther) {
    CachingAllocator allocator(64 * kMiB);
    allocator.release(allocator.allocate(5 * kMiB));
    EXPECT_EQ(allocator.allocate(kMiB), (Address{2, 0}));  // beside 20 MiB that are free
    EXPECT_EQ(allocator.allocate(kMiB + 512), (Address{1, 0}));
}

TEST(CachingAllocator, ASmallBlockIsSplitForAnyRemainder) {
    CachingAllocator allocator(2 * kMiB);
    allocator.allocate(kMiB);
    EXPECT_EQ(allocator.allocate(kMiB - 512), (Address{1, kMiB}));
    EXPECT_EQ(allocator.largest_free_block_bytes(Pool::small), 512u);
    EXPECT_EQ(allocator.allocate(1), (Address{1, 2 * kMiB - 512}));
    EXPECT_EQ(allocator.free_bytes(), 0u);
    EXPECT_EQ(allocator.largest_free_block_bytes(Pool::small), 0u);
}

TEST(CachingAllocator, ALargeBlockIsSplitOnlyForARemainderOverOneMiB) {
    const struct {
        std::size_t asked;
        std::size_t taken;
    } cases[] = {{19 * kMiB, 20 * kMiB}, {19 * kMiB - 512, 19 * kMiB - 512}};
    for (const auto& c : cases) {
        CachingAllocator allocator(20 * kMiB);
        // Takes the segment that both have room in.
        allocator.release(allocator.allocate(5 * kMiB));
        EXPECT_EQ(allocator.allocate(c.asked), (Address{1, 0}));
        EXPECT_EQ(allocator.allocated_bytes(), c.taken);
        EXPECT_EQ(allocator.largest_free_block_bytes(Pool::large), 20 * kMiB - c.taken);
    }
    // A new segment is split by the same rule.
    CachingAllocator allocator(24 * kMiB);
    allocator.allocate(11 * kMiB);
    EXPECT_EQ(allocator.allocated_bytes(), 12 * kMiB);
    allocator.allocate(11 * kMiB - 512);
    EXPECT_EQ(allocator.allocated_bytes(), 23 * kMiB - 512);
    EXPECT_EQ(allocator.reserved_bytes(), 24 * kMiB);
}

TEST(CachingAllocator, TheSmallestFreeBlockThatHoldsTheRequestServesItOfEqualsTheLowest) {
    CachingAllocator allocator(2 * kMiB);
    std::vector<Address> blocks;
    for (const std::size_t bytes : {8, 1, 4, 1, 6, 1, 4, 1})
        blocks.push_back(allocator.allocate(bytes * kKiB));
    // Free are 8 at 0, 4 at 9, 6 at 14 and 4 at 21 KiB, and the end of the segment.
    for (const std::size_t index : {6, 4, 2, 0}) allocator.release(blocks[index]);
    const auto at = [](std::size_t kib) { return Address{1, kib * kKiB}; };
    EXPECT_EQ(allocator.allocate(3 * kKiB), at(9));
    EXPECT_EQ(allocator.allocate(4 * kKiB), at(21));
    EXPECT_EQ(allocator.allocate(5 * kKiB), at(14));
    EXPECT_EQ(allocator.allocate(kKiB), at(12));  // what the first left over, before 19
    EXPECT_EQ(allocator.allocate(9 * kKiB), at(26));
    EXPECT_EQ(allocator.allocate(7 * kKiB), at(0));
}

TEST(CachingAllocator, OfEqualBlocksTheOneInTheOldestSegmentServes) {
    CachingAllocator allocator(40 * kMiB);
    const Address first = allocator.allocate(20 * kMiB);
    const Address second = allocator.allocate(20 * kMiB);
    allocator.release(second);
    allocator.release(first);
    EXPECT_EQ(allocator.allocate(4 * kMiB), first);
}

TEST(CachingAllocator, AReleasedBlockIsMergedWithBothNeighbours) {
    CachingAllocator allocator(20 * kMiB);
    std::vector<Address> blocks;
    for (int i = 0; i < 4; ++i) blocks.push_back(allocator.allocate(5 * kMiB));
    const auto largest = [&] { return allocator.largest_free_block_bytes(Pool::large); };
    allocator.release(blocks[0]);
    allocator.release(blocks[2]);
    EXPECT_EQ(largest(), 5 * kMiB);  // 1 lies between
    allocator.release(blocks[3]);
    EXPECT_EQ(largest(), 10 * kMiB);  // with the one before
    allocator.release(blocks[1]);
    EXPECT_EQ(largest(), 20 * kMiB);  // with those on both sides
    EXPECT_EQ(allocator.segments().at(1).blocks.size(), 1u);
    const Address whole = allocator.allocate(20 * kMiB);
    EXPECT_EQ(whole, (Address{1, 0}));
    allocator.release(whole);
    allocator.allocate(5 * kMiB);
    allocator.release(allocator.allocate(5 * kMiB));  // with the one behind
    EXPECT_EQ(largest(), 15 * kMiB);
}

TEST(CachingAllocator, SegmentsAreNotMerged) {
    CachingAllocator allocator(40 * kMiB);
    const Address first = allocator.allocate(20 * kMiB);
    allocator.release(allocator.allocate(20 * kMiB));
    allocator.release(first);
    EXPECT_EQ(allocator.largest_free_block_bytes(Pool::large), 20 * kMiB);
    EXPECT_EQ(allocator.segments().size(), 2u);
}

TEST(CachingAllocator, FreeSegmentsStayReservedUntilANewOneExceedsTheCapacity) {
    CachingAllocator allocator(46 * kMiB);
    allocator.release(allocator.allocate(kMiB));
    allocator.release(allocator.allocate(12 * kMiB));
    const Address held = allocator.allocate(14 * kMiB);
    EXPECT_EQ(allocator.reserved_bytes(), 28 * kMiB);
    EXPECT_EQ(allocator.allocate(18 * kMiB), (Address{4, 0}));
    EXPECT_EQ(allocator.reserved_bytes(), 46 * kMiB);  // the capacity itself is not exceeded
    EXPECT_EQ(allocator.least_refused_capacity_bytes(), Space::kUnlimited);

    // Of either pool all free segments go, not only as many as are needed.
    EXPECT_EQ(allocator.allocate(14 * kMiB), (Address{5, 0}));
    EXPECT_EQ(allocator.segments().size(), 3u);
    EXPECT_EQ(allocator.reserved_bytes(), 46 * kMiB);
    EXPECT_EQ(allocator.least_refused_capacity_bytes(), 60 * kMiB);
    allocator.release(held);
    EXPECT_EQ(allocator.allocated_bytes(), 32 * kMiB);
    EXPECT_EQ(allocator.peak_allocated_bytes(), 46 * kMiB);
    EXPECT_EQ(allocator.peak_reserved_bytes(), 46 * kMiB);
}

TEST(CachingAllocator, ASegmentThatIsPartlyInUseIsNotGivenBack) {
    CachingAllocator allocator(40 * kMiB);
    const Address first = allocator.allocate(15 * kMiB);  // of a segment of 16
    allocator.release(first);
    const Address held = allocator.allocate(2 * kMiB);  // splits it
    EXPECT_EQ(held, first);
    EXPECT_THROW(allocator.allocate(26 * kMiB), OutOfMemory);
    EXPECT_EQ(allocator.reserved_bytes(), 16 * kMiB);
    allocator.release(held);
    EXPECT_EQ(allocator.allocate(26 * kMiB), (Address{2, 0}));
    EXPECT_EQ(allocator.reserved_bytes(), 26 * kMiB);
}

TEST(CachingAllocator, OutOfMemoryNamesEverythingAndLeavesAllocationsAlone) {
    CachingAllocator allocator(62 * kMiB);
    allocator.release(allocator.allocate(20 * kMiB));
    const Address first = allocator.allocate(9 * kMiB);
    const Address second = allocator.allocate(3 * kMiB);
    allocator.release(allocator.allocate(32 * kMiB));
    allocator.release(first);
    try {
        allocator.allocate(44 * kMiB - 5);
        FAIL() << "accepted";
    } catch (const OutOfMemory& error) {
        EXPECT_STREQ(error.what(),
                     "out of memory in the caching allocator: 46137339 bytes asked for, which take "
                     "a new segment of 46137344; 17825792 bytes are free inside segments, the "
                     "largest free block of the large pool has 9437184; 20971520 of 65011712 bytes "
                     "are reserved");
    }
    EXPECT_EQ(allocator.allocated_bytes(), 3 * kMiB);
    EXPECT_EQ(allocator.least_refused_capacity_bytes(), 64 * kMiB);
    EXPECT_EQ(allocator.largest_servable_bytes(), 42 * kMiB);
    EXPECT_EQ(allocator.allocate(42 * kMiB), (Address{3, 0}));
    allocator.release(second);
    EXPECT_EQ(allocator.largest_free_block_bytes(Pool::large), 20 * kMiB);
}

TEST(CachingAllocator, ARequestBeyondAnyAddressIsOutOfMemory) {
    CachingAllocator allocator(Space::kUnlimited);
    allocator.allocate(1);
    for (const std::size_t bytes : {Space::kUnlimited, Space::kUnlimited - kMiB})
        EXPECT_THROW(allocator.allocate(bytes), OutOfMemory);
    EXPECT_EQ(allocator.rounded_bytes(Space::kUnlimited), Space::kUnlimited);
    EXPECT_EQ(allocator.least_refused_capacity_bytes(), Space::kUnlimited);
    EXPECT_EQ(allocator.allocated_bytes(), 512u);

    CachingAllocator by_bytes(Space::kUnlimited, {1, 1, 1, 2, 2, 1});
    EXPECT_EQ(by_bytes.largest_servable_bytes(), Space::kUnlimited - 1);
    EXPECT_THROW(by_bytes.allocate(Space::kUnlimited), OutOfMemory);
    by_bytes.allocate(Space::kUnlimited - 1);
    EXPECT_EQ(by_bytes.free_bytes(), 1u);
}

TEST(CachingAllocator, OnlyTheBeginningOfALiveAllocationIsReleased) {
    CachingAllocator allocator(20 * kMiB);
    EXPECT_THROW(allocator.release({1, 0}), std::invalid_argument);
    const Address block = allocator.allocate(4 * kMiB);
    EXPECT_THROW(allocator.release({1, 512}), std::invalid_argument);
    EXPECT_THROW(allocator.release({1, 4 * kMiB}), std::invalid_argument);  // free
    EXPECT_THROW(allocator.release({2, 0}), std::invalid_argument);
    EXPECT_THROW(allocator.release({0, 512}), std::invalid_argument);
    allocator.release(block);
    try {
        allocator.release(block);
        FAIL() << "accepted";
    } catch (const std::invalid_argument& error) {
        EXPECT_STREQ(error.what(), "no allocation begins in segment 1 at byte 0");
    }
}

TEST(CachingAllocator, OptionsThatMakeNoPolicyAreRejected) {
    const CachingOptions cases[] = {
        {0, 8, 16, 40, 80, 16},    // no block
        {2, 7, 16, 40, 80, 16},    // no multiple of it
        {2, 8, 16, 40, 80, 0},     // no unit
        {2, 8, 24, 40, 80, 16},    // a small segment that is no multiple of it
        {2, 8, 16, 40, 88, 16},    // nor is a large one
        {2, 18, 16, 40, 80, 16},   // a small request without room in its segment
        {2, 8, 16, 82, 80, 16},    // a large one without
        {2, 16, 16, 16, 80, 16}};  // no request between the two
    for (const CachingOptions& options : cases)
        EXPECT_THROW(CachingAllocator(1000, options), std::invalid_argument);
    const CachingAllocator accepted(1000, kTiny);
    EXPECT_EQ(accepted.capacity_bytes(), 1000u);
}

TEST(CachingAllocator, ASmallerRequestThanTheLargestServableMayTakeALargerSegment) {
    CachingAllocator allocator(12 * kMiB);
    EXPECT_EQ(allocator.largest_servable_bytes(), 12 * kMiB);
    EXPECT_THROW(allocator.allocate(5 * kMiB), OutOfMemory);
    EXPECT_NO_THROW(allocator.allocate(12 * kMiB));
}

// Blocks tile segments, no two free ones touch, and the sums are those of the queries.
void expect_consistent(const CachingAllocator& allocator) {
    std::size_t reserved = 0;
    std::size_t allocated = 0;
    std::size_t largest[2] = {0, 0};
    for (const auto& [number, segment] : allocator.segments()) {
        std::size_t end = 0;
        bool free_before = false;
        for (const auto& [offset, block] : segment.blocks) {
            ASSERT_EQ(offset, end);
            ASSERT_GT(block.bytes, 0u);
            ASSERT_EQ(block.bytes % kTiny.block_bytes, 0u);
            ASSERT_FALSE(free_before && block.free);
            free_before = block.free;
            end += block.bytes;
            std::size_t& best = largest[static_cast<int>(segment.pool)];
            if (block.free)
                best = std::max(best, block.bytes);
            else
                allocated += block.bytes;
        }
        ASSERT_EQ(end, segment.bytes);
        reserved += segment.bytes;
    }
    ASSERT_EQ(allocator.reserved_bytes(), reserved);
    ASSERT_EQ(allocator.allocated_bytes(), allocated);
    ASSERT_EQ(allocator.free_bytes(), allocator.capacity_bytes() - allocated);
    ASSERT_LE(reserved, allocator.capacity_bytes());
    ASSERT_EQ(allocator.largest_free_block_bytes(Pool::small), largest[0]);
    ASSERT_EQ(allocator.largest_free_block_bytes(Pool::large), largest[1]);
    ASSERT_GE(allocator.peak_allocated_bytes(), allocated);
    ASSERT_GE(allocator.peak_reserved_bytes(), reserved);
}

// Where the request belongs, by looking at every block: none if it takes a new segment.
std::optional<Address> best_fit(const CachingAllocator& allocator, std::size_t bytes) {
    std::optional<Address> best;
    std::size_t best_bytes = 0;
    for (const auto& [number, segment] : allocator.segments()) {
        if (segment.pool != allocator.pool_of(bytes)) continue;
        for (const auto& [offset, block] : segment.blocks) {
            if (!block.free || block.bytes < bytes || (best && block.bytes >= best_bytes)) continue;
            best = Address{number, offset};
            best_bytes = block.bytes;
        }
    }
    return best;
}

bool serves(CachingAllocator copy, std::size_t bytes) {
    try {
        copy.allocate(bytes);
        return true;
    } catch (const OutOfMemory&) {
        return false;
    }
}

TEST(CachingAllocator, RandomRequestsKeepTheInvariantsAndTheBestFit) {
    std::mt19937 random(20240611);
    std::size_t refused = 0;
    std::size_t in_free_blocks = 0;
    for (int round = 0; round < 40; ++round) {
        const std::size_t capacity_bytes = 100 + random() % 500;
        CachingAllocator allocator(capacity_bytes, kTiny);
        std::vector<Address> live;
        for (int step = 0; step < 300; ++step) {
            if (!live.empty() && random() % 5 < 2) {
                std::swap(live[random() % live.size()], live.back());
                allocator.release(live.back());
                live.pop_back();
            } else {
                const std::size_t bytes = 1 + random() % (random() % 2 == 0 ? 12 : 120);
                const std::optional<Address> expected = best_fit(allocator, bytes);
                const std::uint64_t newest =
                    allocator.segments().empty() ? 0 : allocator.segments().rbegin()->first;
                try {
                    live.push_back(allocator.allocate(bytes));
                    in_free_blocks += expected.has_value();
                    if (expected)
                        ASSERT_EQ(live.back(), *expected);
                    else
                        ASSERT_GT(live.back().segment, newest);
                } catch (const OutOfMemory&) {
                    ++refused;
                    ASSERT_FALSE(expected);
                }
            }
            ASSERT_NO_FATAL_FAILURE(expect_consistent(allocator));
            if (step % 10 != 0) continue;
            const std::size_t largest = allocator.largest_servable_bytes();
            ASSERT_TRUE(largest == 0 || serves(allocator, largest));
            for (std::size_t bytes = largest + 1; bytes <= capacity_bytes + 1; ++bytes)
                ASSERT_FALSE(serves(allocator, bytes)) << bytes << " of at most " << largest;
        }
        for (const Address address : live) allocator.release(address);
        ASSERT_EQ(allocator.allocated_bytes(), 0u);
        ASSERT_NO_FATAL_FAILURE(expect_consistent(allocator));
    }
    // Both happened often enough to mean something.
    EXPECT_GT(refused, 500u);
    EXPECT_GT(in_free_blocks, 1000u);
}

}  // namespace
}  // namespace zeroproof::memory
