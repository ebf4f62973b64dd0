// A model of the caching allocator that training frameworks put before a device. It takes no
// memory: it only works out where each block would lie, and so what fragmentation costs.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "memory/space.h"

namespace zeroproof::memory {

// The sizes that make up the policy, in bytes. The defaults are those of PyTorch's CUDA caching
// allocator, with its options for rounding, splitting and expandable segments left alone.
struct CachingOptions {
    // Requests are rounded up to multiples of this.
    std::size_t block_bytes = 512;
    // Requests up to this come from the small pool, larger ones from the large pool. A block of the
    // large pool is split only when more than this remains.
    std::size_t small_request_bytes = std::size_t{1} << 20;
    // A segment of the small pool.
    std::size_t small_segment_bytes = std::size_t{2} << 20;
    // A request of the large pool below `large_request_bytes` takes a segment of
    // `large_segment_bytes`, any other one of its own size, rounded up to `segment_unit_bytes`, of
    // which the other segments are multiples too.
    std::size_t large_request_bytes = std::size_t{10} << 20;
    std::size_t large_segment_bytes = std::size_t{20} << 20;
    std::size_t segment_unit_bytes = std::size_t{2} << 20;
};

// A segment is what the device hands out; it is tiled by blocks. A request takes the smallest free
// block of its pool that holds it, of equals the one at the lowest address, and splits it when what
// remains is worth it. Where none holds it, the device is asked for a segment. A block that is
// released is merged with free neighbours in its segment. Nothing is ever moved, and a segment goes
// back to the device only when it is wholly free and the capacity leaves no room for a new one.
//
// The device itself does not fragment: it maps any segment that fits into what is left of it.
class CachingAllocator {
  public:
    enum class Pool { small, large };

    // Segments are numbered from 1 as they are taken, and later ones lie higher.
    struct Address {
        std::uint64_t segment = 0;  // 0: nowhere, the address of no bytes
        std::size_t offset_bytes = 0;
        auto operator<=>(const Address&) const = default;
    };
    struct Block {
        std::size_t bytes;
        bool free;
    };
    struct Segment {
        Pool pool;
        std::size_t bytes;
        std::map<std::size_t, Block> blocks;  // by offset
    };

    // Throws std::invalid_argument when an option is no positive multiple of `block_bytes`, a
    // segment no multiple of its unit or too small for a request that takes it, or when no request
    // would be between small ones and those with a segment of their own size.
    explicit CachingAllocator(std::size_t capacity_bytes, const CachingOptions& options = {});

    // Where `bytes` now lie; nowhere for 0 bytes, which take nothing. Throws OutOfMemory when the
    // capacity leaves no room, even after every wholly free segment went back to the device.
    Address allocate(std::size_t bytes);
    // Nothing happens for nowhere. Throws std::invalid_argument when no allocation begins there.
    void release(Address address);

    std::size_t capacity_bytes() const { return capacity_bytes_; }
    // In blocks that are in use, with what rounding and blocks not worth splitting add.
    std::size_t allocated_bytes() const { return allocated_bytes_; }
    std::size_t peak_allocated_bytes() const { return peak_allocated_bytes_; }
    // In segments.
    std::size_t reserved_bytes() const { return reserved_bytes_; }
    std::size_t peak_reserved_bytes() const { return peak_reserved_bytes_; }
    // Not allocated: free inside segments, or not reserved.
    std::size_t free_bytes() const { return capacity_bytes_ - allocated_bytes_; }
    // 0 when the pool has no free block.
    std::size_t largest_free_block_bytes(Pool pool) const;
    // The largest request that would now succeed, if need be after giving segments back. A smaller
    // one may still fail, as it may take a larger segment.
    std::size_t largest_servable_bytes() const;
    // The least capacity that would have granted a segment which this one refused, even if giving
    // others back then made room for it; Space::kUnlimited when there is none. Every capacity from
    // this one up to there, exclusive, would have led to the same blocks at the same places.
    std::size_t least_refused_capacity_bytes() const { return least_refused_capacity_bytes_; }

    // The block that a request needs; Space::kUnlimited when that exceeds any address.
    std::size_t rounded_bytes(std::size_t bytes) const;
    // The pool that serves a request.
    Pool pool_of(std::size_t bytes) const;
    // All segments by number, for those who draw or check the layout.
    const std::map<std::uint64_t, Segment>& segments() const { return segments_; }

  private:
    // By size, then address: the first that is large enough is the best fit.
    using FreeBlocks = std::set<std::pair<std::size_t, Address>>;

    FreeBlocks& free_blocks(Pool pool) { return free_blocks_[static_cast<std::size_t>(pool)]; }
    const FreeBlocks& free_blocks(Pool pool) const {
        return free_blocks_[static_cast<std::size_t>(pool)];
    }
    std::size_t segment_bytes_for(std::size_t rounded) const;
    bool fits(std::size_t segment_bytes);
    bool is_worth_splitting(Pool pool, std::size_t remainder_bytes) const;
    void reserve(std::size_t bytes, std::size_t rounded);
    void give_back_free_segments();

    std::size_t capacity_bytes_;
    CachingOptions options_;
    std::map<std::uint64_t, Segment> segments_;
    std::uint64_t last_segment_ = 0;
    std::array<FreeBlocks, 2> free_blocks_;
    std::size_t allocated_bytes_ = 0;
    std::size_t peak_allocated_bytes_ = 0;
    std::size_t reserved_bytes_ = 0;
    std::size_t peak_reserved_bytes_ = 0;
    std::size_t least_refused_capacity_bytes_ = Space::kUnlimited;
};

}  // namespace zeroproof::memory
