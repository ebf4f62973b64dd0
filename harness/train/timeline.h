// What a rank's memory held at each moment.
#pragma once

#include <chrono>
#include <vector>

#include "harness/train/train_record.h"
#include "memory/ledger.h"

namespace zeroproof::harness {

// A point for each change of the ledger that it observes.
class Timeline : public memory::Ledger::Observer {
  public:
    void start() { begin_ = std::chrono::steady_clock::now(); }
    void changed(const memory::Ledger& ledger) override;
    std::vector<TimelinePoint> take() { return std::move(points_); }

  private:
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    std::vector<TimelinePoint> points_;
};

}  // namespace zeroproof::harness
