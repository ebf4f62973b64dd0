// Element types that tensors have at rest and on the wire, and the conversions between them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace zeroproof::memory {

enum class DType { fp32, fp16, bf16, fp64, int8, int32, int64 };

inline constexpr DType kAllDTypes[] = {DType::fp32, DType::fp16,  DType::bf16, DType::fp64,
                                       DType::int8, DType::int32, DType::int64};

// Bytes of one element.
std::size_t size_of(DType type);
std::string_view name_of(DType type);
// The type of that name. Throws std::invalid_argument, naming the known ones.
DType dtype_from_name(std::string_view name);
bool is_floating(DType type);

// IEEE 754 binary16, kept as its bits.
struct Half {
    std::uint16_t bits = 0;
    friend bool operator==(Half, Half) = default;
};

// bfloat16: the upper half of a binary32.
struct BFloat16 {
    std::uint16_t bits = 0;
    friend bool operator==(BFloat16, BFloat16) = default;
};

inline float to_float(BFloat16 value) {
    return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
}

// Rounds to nearest, ties to even. NaN stays NaN.
inline BFloat16 to_bfloat16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
    const bool is_nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
    return {static_cast<std::uint16_t>(is_nan ? (bits >> 16) | 0x40u : rounded)};
}

// Both conversions of Half choose among values and do not branch, so that loops over them
// vectorise.
inline float to_float(Half value) {
    const std::uint32_t sign = std::uint32_t{value.bits & 0x8000u} << 16;
    const std::uint32_t magnitude = value.bits & 0x7FFFu;
    // Read as a float, the magnitude is too small by 2^(127 - 15), subnormal or not.
    const float finite = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
    const std::uint32_t infinity_or_nan = 0x7F800000u | (magnitude << 13);
    return std::bit_cast<float>(
        sign | (magnitude >= 0x7C00u ? infinity_or_nan : std::bit_cast<std::uint32_t>(finite)));
}

// Rounds to nearest, ties to even; beyond 65519.99 to infinity. NaN stays NaN.
inline Half to_half(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 16) & 0x8000u;
    const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
    // Below 2^-14 the spacing is 2^-24. Adding 0.5 puts that spacing at the last bit of the float,
    // so that the addition itself rounds to nearest even.
    const std::uint32_t subnormal =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000u;
    const std::uint32_t rebiased = magnitude - (std::uint32_t{127 - 15} << 23);
    const std::uint32_t normal = (rebiased + 0xFFFu + ((rebiased >> 13) & 1u)) >> 13;
    const std::uint32_t finite = magnitude < 0x38800000u ? subnormal : normal;
    const std::uint32_t bounded = magnitude >= 0x477FF000u ? 0x7C00u : finite;
    const std::uint32_t rounded = magnitude > 0x7F800000u ? 0x7E00u : bounded;
    return {static_cast<std::uint16_t>(sign | rounded)};
}

// Calls `use` with a value of the C++ type that stores `type`.
template <typename Use>
decltype(auto) with_storage_type(DType type, Use&& use) {
    switch (type) {
        case DType::fp16: return use(Half{});
        case DType::bf16: return use(BFloat16{});
        case DType::fp64: return use(double{});
        case DType::int8: return use(std::int8_t{});
        case DType::int32: return use(std::int32_t{});
        case DType::int64: return use(std::int64_t{});
        case DType::fp32: break;
    }
    return use(float{});
}

// One element, widened. Integers beyond 2^53 round.
double load_element(DType type, const void* data, std::size_t index);
// One element, rounded to nearest even (floating types) or truncated (integers).
void store_element(DType type, void* data, std::size_t index, double value);

}  // namespace zeroproof::memory
