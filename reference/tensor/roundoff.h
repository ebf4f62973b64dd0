// For tests: what one rounding costs.
#pragma once

#include <type_traits>

#include "reference/tensor/scalar.h"

namespace zeroproof::reference {

// Half of the distance between neighbouring values, relative to them.
template <typename T>
constexpr double roundoff() {
    if constexpr (std::is_same_v<T, double>)
        return 0x1p-53;
    else if constexpr (std::is_same_v<T, Half>)
        return 0x1p-11;
    else if constexpr (std::is_same_v<T, BFloat16>)
        return 0x1p-8;
    else
        return 0x1p-24;
}

}  // namespace zeroproof::reference
