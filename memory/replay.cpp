#include "memory/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>

namespace zeroproof::memory {

namespace {

// Up to the first allocation that does not fit, which is returned as an index.
std::optional<std::size_t> run(const AllocationTrace& trace, CachingAllocator& allocator) {
    std::unordered_map<std::uint64_t, CachingAllocator::Address> live;
    for (std::size_t i = 0; i < trace.events.size(); ++i) {
        const AllocationEvent& event = trace.events[i];
        if (event.kind == AllocationEvent::Kind::release) {
            const auto released = live.find(event.id);
            allocator.release(released->second);
            live.erase(released);
            continue;
        }
        try {
            live.emplace(event.id, allocator.allocate(event.bytes));
        } catch (const OutOfMemory&) {
            return i;
        }
    }
    return std::nullopt;
}

// The most bytes that are live at once, kUnlimited when they exceed any address. No allocator goes
// through with less.
std::size_t peak_live_bytes(const AllocationTrace& trace) {
    std::unordered_map<std::uint64_t, std::size_t> bytes_of;
    std::size_t live = 0;
    std::size_t peak = 0;
    for (const AllocationEvent& event : trace.events) {
        if (event.kind == AllocationEvent::Kind::release) {
            live -= bytes_of.at(event.id);
            continue;
        }
        if (event.bytes > Space::kUnlimited - live) return Space::kUnlimited;
        bytes_of[event.id] = event.bytes;
        live += event.bytes;
        peak = std::max(peak, live);
    }
    return peak;
}

}  // namespace

ReplayResult replay(const AllocationTrace& trace, std::size_t capacity_bytes,
                    const CachingOptions& options) {
    check(trace);
    CachingAllocator allocator(capacity_bytes, options);
    const std::optional<std::size_t> failed = run(trace, allocator);
    ReplayResult result{std::nullopt, allocator.peak_allocated_bytes(),
                        allocator.peak_reserved_bytes()};
    if (failed) {
        const std::size_t asked = trace.events[*failed].bytes;
        result.failure = {*failed,
                          asked,
                          allocator.free_bytes(),
                          allocator.reserved_bytes(),
                          allocator.largest_free_block_bytes(allocator.pool_of(asked)),
                          allocator.rounded_bytes(asked) <= allocator.free_bytes()};
    }
    return result;
}

std::size_t smallest_capacity(const AllocationTrace& trace, const CachingOptions& options) {
    check(trace);
    std::size_t capacity_bytes = peak_live_bytes(trace);
    while (true) {
        CachingAllocator allocator(capacity_bytes, options);
        const std::optional<std::size_t> failed = run(trace, allocator);
        if (!failed) return capacity_bytes;
        // Below this the replay would end in the same way.
        const std::size_t next = allocator.least_refused_capacity_bytes();
        if (next == Space::kUnlimited)
            throw OutOfMemory(fmt::format("event {} asks for {} bytes, which no capacity holds",
                                          *failed, trace.events[*failed].bytes));
        capacity_bytes = next;
    }
}

}  // namespace zeroproof::memory
