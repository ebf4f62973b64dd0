#include "harness/train/timeline.h"

namespace zeroproof::harness {

using memory::AllocationEvent;

void Timeline::changed(const memory::Ledger& ledger) {
    if (!on_) return;
    const std::chrono::duration<double> now = std::chrono::steady_clock::now() - begin_;
    points_.push_back({now.count(), ledger.phase(), ledger.live_bytes_by_category()});
}

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
