#include "memory/caching_allocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>

namespace zeroproof::memory {

namespace {

constexpr std::size_t kUnlimited = Space::kUnlimited;

// kUnlimited, which no device has, when the multiple exceeds it.
std::size_t round_up(std::size_t bytes, std::size_t unit) {
    if (bytes > kUnlimited - (unit - 1)) return kUnlimited;
    return (bytes + unit - 1) / unit * unit;
}

bool is_wholly_free(const CachingAllocator::Segment& segment) {
    return segment.blocks.size() == 1 && segment.blocks.begin()->second.free;
}

void check(const CachingOptions& options) {
    for (const std::size_t bytes :
         {options.block_bytes, options.small_request_bytes, options.small_segment_bytes,
          options.large_request_bytes, options.large_segment_bytes, options.segment_unit_bytes})
        if (bytes == 0 || options.block_bytes == 0 || bytes % options.block_bytes != 0)
            throw std::invalid_argument(fmt::format(
                "{} bytes are no positive multiple of a block of {}", bytes, options.block_bytes));
    for (const std::size_t bytes : {options.small_segment_bytes, options.large_segment_bytes})
        if (bytes % options.segment_unit_bytes != 0)
            throw std::invalid_argument(fmt::format("a segment of {} bytes is no multiple of {}",
                                                    bytes, options.segment_unit_bytes));
    if (options.small_request_bytes > options.small_segment_bytes ||
        options.large_request_bytes > options.large_segment_bytes)
        throw std::invalid_argument(
            fmt::format("requests of up to {} and {} bytes do not fit into segments of {} and {}",
                        options.small_request_bytes, options.large_request_bytes,
                        options.small_segment_bytes, options.large_segment_bytes));
    if (options.small_request_bytes >= options.large_request_bytes)
        throw std::invalid_argument(
            fmt::format("small requests, of up to {} bytes, reach large ones, from {} on",
                        options.small_request_bytes, options.large_request_bytes));
}

}  // namespace

CachingAllocator::CachingAllocator(std::size_t capacity_bytes, const CachingOptions& options)
    : capacity_bytes_(capacity_bytes), options_(options) {
    check(options);
}

std::size_t CachingAllocator::rounded_bytes(std::size_t bytes) const {
    return round_up(bytes, options_.block_bytes);
}

CachingAllocator::Pool CachingAllocator::pool_of(std::size_t bytes) const {
    return bytes <= options_.small_request_bytes ? Pool::small : Pool::large;
}

std::size_t CachingAllocator::segment_bytes_for(std::size_t rounded) const {
    if (rounded <= options_.small_request_bytes) return options_.small_segment_bytes;
    if (rounded < options_.large_request_bytes) return options_.large_segment_bytes;
    return round_up(rounded, options_.segment_unit_bytes);
}

bool CachingAllocator::is_worth_splitting(Pool pool, std::size_t remainder_bytes) const {
    return pool == Pool::small ? remainder_bytes >= options_.block_bytes
                               : remainder_bytes > options_.small_request_bytes;
}

CachingAllocator::Address CachingAllocator::allocate(std::size_t bytes) {
    if (bytes == 0) return {};
    const std::size_t rounded = rounded_bytes(bytes);
    const Pool pool = pool_of(bytes);
    FreeBlocks& free = free_blocks(pool);
    auto best = free.lower_bound({rounded, Address{}});
    if (best == free.end()) {
        reserve(bytes, rounded);
        best = free.lower_bound({rounded, Address{}});
    }
    const auto [block_bytes, address] = *best;
    free.erase(best);

    auto& blocks = segments_.at(address.segment).blocks;
    Block& block = blocks.at(address.offset_bytes);
    block.free = false;
    const std::size_t remainder = block_bytes - rounded;
    if (is_worth_splitting(pool, remainder)) {
        block.bytes = rounded;
        const Address rest{address.segment, address.offset_bytes + rounded};
        blocks.emplace(rest.offset_bytes, Block{remainder, true});
        free.emplace(remainder, rest);
    }
    allocated_bytes_ += block.bytes;
    peak_allocated_bytes_ = std::max(peak_allocated_bytes_, allocated_bytes_);
    return address;
}

void CachingAllocator::release(Address address) {
    if (address == Address{}) return;
    const auto refuse = [&] {
        throw std::invalid_argument(fmt::format("no allocation begins in segment {} at byte {}",
                                                address.segment, address.offset_bytes));
    };
    const auto segment = segments_.find(address.segment);
    if (segment == segments_.end()) refuse();
    auto& [pool, segment_bytes, blocks] = segment->second;
    auto block = blocks.find(address.offset_bytes);
    if (block == blocks.end() || block->second.free) refuse();

    FreeBlocks& free = free_blocks(pool);
    const auto forget = [&](auto neighbour) {
        free.erase({neighbour->second.bytes, Address{address.segment, neighbour->first}});
    };
    allocated_bytes_ -= block->second.bytes;
    if (const auto next = std::next(block); next != blocks.end() && next->second.free) {
        forget(next);
        block->second.bytes += next->second.bytes;
        blocks.erase(next);
    }
    if (block != blocks.begin() && std::prev(block)->second.free) {
        const auto previous = std::prev(block);
        forget(previous);
        previous->second.bytes += block->second.bytes;
        blocks.erase(block);
        block = previous;
    }
    block->second.free = true;
    free.emplace(block->second.bytes, Address{address.segment, block->first});
}

bool CachingAllocator::fits(std::size_t segment_bytes) {
    if (segment_bytes != kUnlimited && segment_bytes <= capacity_bytes_ - reserved_bytes_)
        return true;
    const std::size_t needed =
        segment_bytes > kUnlimited - reserved_bytes_ ? kUnlimited : reserved_bytes_ + segment_bytes;
    least_refused_capacity_bytes_ = std::min(least_refused_capacity_bytes_, needed);
    return false;
}

// Afterwards the pool has a free block that holds the request.
void CachingAllocator::reserve(std::size_t bytes, std::size_t rounded) {
    const Pool pool = pool_of(bytes);
    const std::size_t segment_bytes = segment_bytes_for(rounded);
    if (!fits(segment_bytes)) {
        give_back_free_segments();
        if (!fits(segment_bytes))
            throw OutOfMemory(fmt::format(
                "out of memory in the caching allocator: {} bytes asked for, which take a new "
                "segment of {}; {} bytes are free inside segments, the largest free block of the "
                "{} pool has {}; {} of {} bytes are reserved",
                bytes, segment_bytes, reserved_bytes_ - allocated_bytes_,
                pool == Pool::small ? "small" : "large", largest_free_block_bytes(pool),
                reserved_bytes_, capacity_bytes_));
    }
    const Address begin{++last_segment_, 0};
    segments_.emplace(begin.segment, Segment{pool, segment_bytes, {{0, {segment_bytes, true}}}});
    free_blocks(pool).emplace(segment_bytes, begin);
    reserved_bytes_ += segment_bytes;
    peak_reserved_bytes_ = std::max(peak_reserved_bytes_, reserved_bytes_);
}

void CachingAllocator::give_back_free_segments() {
    std::erase_if(segments_, [&](const auto& entry) {
        const auto& [number, segment] = entry;
        if (!is_wholly_free(segment)) return false;
        free_blocks(segment.pool).erase({segment.bytes, Address{number, 0}});
        reserved_bytes_ -= segment.bytes;
        return true;
    });
}

std::size_t CachingAllocator::largest_free_block_bytes(Pool pool) const {
    const FreeBlocks& free = free_blocks(pool);
    return free.empty() ? 0 : free.rbegin()->first;
}

std::size_t CachingAllocator::largest_servable_bytes() const {
    // The small pool serves small requests, however large its blocks are. No block of the large
    // pool is so small that requests of its size go to the small one: it would not have been split
    // off.
    std::size_t largest =
        std::max(std::min(largest_free_block_bytes(Pool::small), options_.small_request_bytes),
                 largest_free_block_bytes(Pool::large));

    std::size_t room = capacity_bytes_ - reserved_bytes_;
    for (const auto& [number, segment] : segments_)
        if (is_wholly_free(segment)) room += segment.bytes;
    if (room >= options_.small_segment_bytes)
        largest = std::max(largest, options_.small_request_bytes);
    // Room for a segment of the large pool's fixed size is room for one of a request's own size,
    // which is larger. No segment has kUnlimited bytes, see fits().
    const std::size_t unit = options_.segment_unit_bytes;
    const std::size_t own_segment = std::min(room, kUnlimited - 1) / unit * unit;
    if (own_segment >= options_.large_request_bytes) largest = std::max(largest, own_segment);
    return largest;
}

}  // namespace zeroproof::memory
