// The types of tensors at rest, and those in which arithmetic is done on them.
#pragma once

#include <type_traits>

#include "memory/dtype.h"

namespace zeroproof::reference {

using memory::BFloat16;
using memory::Half;

// 16-bit types are widened to fp32, computed with, and rounded once when they are stored. fp64 is
// for tests alone: in it the derivatives of a layer can be compared with differences.
template <typename T>
using Compute = std::conditional_t<std::is_same_v<std::remove_const_t<T>, double>, double, float>;

inline float widen(float value) {
    return value;
}
inline double widen(double value) {
    return value;
}
inline float widen(Half value) {
    return to_float(value);
}
inline float widen(BFloat16 value) {
    return to_float(value);
}

template <typename Storage>
Storage narrow(Compute<Storage> value) {
    if constexpr (std::is_same_v<Storage, Half>)
        return memory::to_half(value);
    else if constexpr (std::is_same_v<Storage, BFloat16>)
        return memory::to_bfloat16(value);
    else
        return value;
}

template <typename T>
constexpr memory::DType dtype_of() {
    using memory::DType;
    if constexpr (std::is_same_v<T, double>)
        return DType::fp64;
    else if constexpr (std::is_same_v<T, Half>)
        return DType::fp16;
    else if constexpr (std::is_same_v<T, BFloat16>)
        return DType::bf16;
    else
        return DType::fp32;
}

}  // namespace zeroproof::reference
