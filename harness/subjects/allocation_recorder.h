// Which buffers a space has handed out, in the order in which they are taken and returned.
#pragma once

#include <map>
#include <utility>

#include "memory/allocation_trace.h"
#include "memory/space.h"

namespace zeroproof::harness {

class AllocationRecorder : public memory::SpaceObserver {
  public:
    explicit AllocationRecorder(const memory::Ledger& ledger) : ledger_(ledger) {}
    void taken(const std::byte* storage, memory::Category category, std::size_t bytes) override;
    void returned(const std::byte* storage) override;
    memory::AllocationTrace take() { return std::exchange(trace_, {}); }

  private:
    const memory::Ledger& ledger_;
    std::map<const std::byte*, std::uint64_t> live_;
    std::uint64_t next_ = 0;
    memory::AllocationTrace trace_;
};

}  // namespace zeroproof::harness
