// Memory that an engine takes from the host and returns.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>

#include "memory/space.h"

namespace zeroproof::harness {

// An engine has broken a rule of zeroproof.h.
class PluginFault : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Throws PluginFault. Of the thread of one rank.
class PluginMemory {
  public:
    // `space` outlives it, and quarantines: an address is never given twice.
    explicit PluginMemory(memory::Space& space) : space_(space) {}

    void* allocate(std::int32_t category, std::size_t bytes);
    void release(void* memory);

  private:
    memory::Space& space_;
    std::map<const void*, memory::Buffer> live_;
    std::set<const void*> released_;
};

}  // namespace zeroproof::harness
