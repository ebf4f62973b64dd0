// What a rank's memory held at each moment.
#pragma once

#include <chrono>
#include <vector>

#include "harness/train/train_record.h"
#include "memory/ledger.h"

namespace zeroproof::harness {

// A point for each change of a ledger, while it is switched on.
class Timeline : public memory::Ledger::Observer {
  public:
    void start() { begin_ = std::chrono::steady_clock::now(); }
    void record(bool on) { on_ = on; }
    void changed(const memory::Ledger& ledger) override;
    std::vector<TimelinePoint> take() { return std::move(points_); }

  private:
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    bool on_ = false;
    std::vector<TimelinePoint> points_;
};

}  // namespace zeroproof::harness
