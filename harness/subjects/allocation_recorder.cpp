#include "harness/subjects/allocation_recorder.h"

namespace zeroproof::harness {

using memory::AllocationEvent;

void AllocationRecorder::taken(const std::byte* storage, memory::Category category,
                               std::size_t bytes) {
    live_[storage] = next_;
    trace_.events.push_back(
        {AllocationEvent::Kind::allocate, next_++, bytes, category, ledger_.phase()});
}

void AllocationRecorder::returned(const std::byte* storage) {
    const auto found = live_.find(storage);
    trace_.events.push_back({AllocationEvent::Kind::release, found->second, 0,
                             memory::Category::buffer, ledger_.phase()});
    live_.erase(found);
}

}  // namespace zeroproof::harness
