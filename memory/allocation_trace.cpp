#include "memory/allocation_trace.h"

#include <fmt/format.h>

#include <stdexcept>
#include <unordered_set>

namespace zeroproof::memory {

void check(const AllocationTrace& trace) {
    std::unordered_set<std::uint64_t> live;
    for (std::size_t i = 0; i < trace.events.size(); ++i) {
        const AllocationEvent& event = trace.events[i];
        if (event.kind == AllocationEvent::Kind::allocate) {
            if (!live.insert(event.id).second)
                throw std::invalid_argument(
                    fmt::format("event {} allocates id {}, which is live", i, event.id));
        } else if (live.erase(event.id) == 0) {
            throw std::invalid_argument(
                fmt::format("event {} releases id {}, which is not live", i, event.id));
        }
    }
}

}  // namespace zeroproof::memory
