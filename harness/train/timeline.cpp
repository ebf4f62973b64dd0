#include "harness/train/timeline.h"

namespace zeroproof::harness {

void Timeline::changed(const memory::Ledger& ledger) {
    const std::chrono::duration<double> now = std::chrono::steady_clock::now() - begin_;
    points_.push_back({now.count(), ledger.phase(), ledger.live_bytes_by_category()});
}

}  // namespace zeroproof::harness
