#include "harness/plugin/plugin_memory.h"

#include <fmt/format.h>

#include "harness/plugin/zeroproof.h"

namespace zeroproof::harness {

using memory::Category;

static_assert(static_cast<int>(Category::parameter) == ZEROPROOF_PARAMETER &&
              static_cast<int>(Category::gradient) == ZEROPROOF_GRADIENT &&
              static_cast<int>(Category::master) == ZEROPROOF_MASTER &&
              static_cast<int>(Category::momentum) == ZEROPROOF_MOMENTUM &&
              static_cast<int>(Category::variance) == ZEROPROOF_VARIANCE &&
              static_cast<int>(Category::activation) == ZEROPROOF_ACTIVATION &&
              static_cast<int>(Category::checkpoint) == ZEROPROOF_CHECKPOINT &&
              static_cast<int>(Category::buffer) == ZEROPROOF_BUFFER);

void* PluginMemory::allocate(std::int32_t category, std::size_t bytes) {
    if (category < 0 || category >= static_cast<int>(memory::kCategories))
        throw PluginFault(fmt::format("category {} of memory does not exist", category));
    if (bytes == 0) return nullptr;
    memory::Buffer buffer(space_, static_cast<Category>(category), memory::DType::int8, bytes);
    void* memory = buffer.data();
    live_.emplace(memory, std::move(buffer));
    return memory;
}

void PluginMemory::release(void* memory) {
    if (memory == nullptr) return;
    const auto at = live_.find(memory);
    if (at == live_.end())
        throw PluginFault(released_.contains(memory)
                              ? fmt::format("{} is released twice", memory)
                              : fmt::format("{} is no memory that allocate() has given to this "
                                            "rank: release exactly that",
                                            memory));
    live_.erase(at);
    released_.insert(memory);
}

}  // namespace zeroproof::harness
