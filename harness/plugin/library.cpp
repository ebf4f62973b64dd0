#include "harness/plugin/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace zeroproof::harness {

namespace {

constexpr const char* kRebuild =
    "build it against harness/plugin/zeroproof.h of this zeroproof; docs/plugin.md";

void require(const void* function, const char* name) {
    if (function == nullptr)
        throw UnfitPlugin(
            fmt::format("the engine's table has no function {}, which cannot be null", name));
}

}  // namespace

PluginLibrary::PluginLibrary(const std::filesystem::path& path) {
    const std::string file = std::filesystem::absolute(path).string();
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* why = dlerror();
        throw UnfitPlugin(
            fmt::format("cannot be loaded: {}; expected a shared object with an "
                        "engine, docs/plugin.md",
                        why == nullptr ? "unknown" : why));
    }
    const auto get =
        reinterpret_cast<decltype(&zeroproof_get_engine)>(dlsym(library, "zeroproof_get_engine"));
    if (get == nullptr)
        throw UnfitPlugin(
            "exports no function zeroproof_get_engine, which harness/plugin/zeroproof.h declares: "
            "define it, extern \"C\" in C++, and do not hide it; docs/plugin.md");
    const zeroproof_engine* table = get(ZEROPROOF_ABI_VERSION);
    if (table == nullptr)
        throw UnfitPlugin(fmt::format("does not know version {} of the interface: {}",
                                      ZEROPROOF_ABI_VERSION, kRebuild));
    if (table->abi_version != ZEROPROOF_ABI_VERSION)
        throw UnfitPlugin(fmt::format("is for version {} of the interface, and this is {}: {}",
                                      table->abi_version, ZEROPROOF_ABI_VERSION, kRebuild));
    if (table->struct_size < offsetof(zeroproof_engine, zero_grad))
        throw UnfitPlugin(
            fmt::format("has a table of {} bytes, fewer than the functions that cannot be null "
                        "take: set struct_size to sizeof(zeroproof_engine)",
                        table->struct_size));
    std::memcpy(&engine_, table, std::min<std::size_t>(table->struct_size, sizeof engine_));
    require(reinterpret_cast<const void*>(engine_.describe), "describe");
    require(reinterpret_cast<const void*>(engine_.create), "create");
    require(reinterpret_cast<const void*>(engine_.destroy), "destroy");
    require(reinterpret_cast<const void*>(engine_.micro_step), "micro_step");
    require(reinterpret_cast<const void*>(engine_.step), "step");
}

}  // namespace zeroproof::harness
