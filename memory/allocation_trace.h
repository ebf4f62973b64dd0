// What was taken and returned, in order: the input of a replay on a model of an allocator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/ledger.h"

namespace zeroproof::memory {

struct AllocationEvent {
    enum class Kind { allocate, release } kind = Kind::allocate;
    // Names one allocation from its allocate to its release; after that the id may name another.
    std::uint64_t id = 0;
    // As asked for, before any rounding; 0 is allowed and takes nothing. Category and phase are for
    // those who read a trace. Of a release, nothing but the id counts.
    std::size_t bytes = 0;
    Category category = Category::buffer;
    Phase phase = Phase::initialise;
};

// The events of one memory of one rank, oldest first. What is never released lives to the end.
struct AllocationTrace {
    std::vector<AllocationEvent> events;
};

// Throws std::invalid_argument, naming the index of the event, when an id is released that is not
// live, or allocated while it is.
void check(const AllocationTrace& trace);

}  // namespace zeroproof::memory
