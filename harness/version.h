// What this program is.
#pragma once

#include <string_view>

namespace zeroproof::harness {

inline constexpr std::string_view kVersion = ZEROPROOF_VERSION;

}  // namespace zeroproof::harness
