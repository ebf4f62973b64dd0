// What a rank's memory held at each moment, and which buffers it took and returned.
#pragma once

#include <chrono>
#include <map>
#include <vector>

#include "harness/train/train_record.h"
#include "memory/space.h"

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

// The buffers of a space, in the order in which they are taken and returned.
class AllocationRecorder : public memory::SpaceObserver {
  public:
    explicit AllocationRecorder(const memory::Ledger& ledger) : ledger_(ledger) {}
    void taken(const std::byte* storage, memory::Category category, std::size_t bytes) override;
    void returned(const std::byte* storage) override;
    memory::AllocationTrace take() { return std::move(trace_); }

  private:
    const memory::Ledger& ledger_;
    std::map<const std::byte*, std::uint64_t> live_;
    std::uint64_t next_ = 0;
    memory::AllocationTrace trace_;
};

}  // namespace zeroproof::harness
