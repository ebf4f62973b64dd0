// Replays of a trace of allocations on the model of a caching allocator.
#pragma once

#include <cstddef>
#include <optional>

#include "memory/allocation_trace.h"
#include "memory/caching_allocator.h"

namespace zeroproof::memory {

// The allocation that did not fit, and the allocator at that time: every wholly free segment is
// back with the device.
struct ReplayFailure {
    std::size_t event;        // its index in the trace
    std::size_t asked_bytes;  // before rounding
    // Not allocated, whether inside segments or not reserved.
    std::size_t free_bytes;
    std::size_t reserved_bytes;
    // Of the pool that serves the request; less than what was asked for.
    std::size_t largest_free_block_bytes;
    // Whether the free bytes would have held the request, rounded to blocks: they are there, but in
    // pieces, in the other pool, or too few for the segment that the request takes.
    bool fragmentation;
};

struct ReplayResult {
    std::optional<ReplayFailure> failure;  // none: the whole trace went through
    std::size_t peak_allocated_bytes = 0;  // up to the failure, if there is one
    std::size_t peak_reserved_bytes = 0;

    bool went_through() const { return !failure; }
};

// Stops at the first allocation that does not fit. Throws std::invalid_argument for a trace that
// check() rejects, and for options that CachingAllocator rejects.
ReplayResult replay(const AllocationTrace& trace, std::size_t capacity_bytes,
                    const CachingOptions& options = {});

// The least capacity at which the trace goes through, exact to the byte. Throws as replay() does,
// and OutOfMemory when the trace goes through at no capacity.
//
// A trace may go through at one capacity and fail at a larger one: with more room the allocator
// keeps a free segment for longer, and a block that lives long may then split it. So this does not
// halve an interval. It replays at the most bytes that are live at once, which is the least that
// could do, then each time at the next capacity that changes anything, until one goes through.
std::size_t smallest_capacity(const AllocationTrace& trace, const CachingOptions& options = {});

}  // namespace zeroproof::memory
