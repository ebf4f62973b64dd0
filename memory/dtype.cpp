#include "memory/dtype.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace zeroproof::memory {

namespace {

// Of the two floats around a value that is none, the one with an odd last bit: no value then falls
// on a tie of a narrower type, where rounding a second time would go wrong.
float to_float_odd(double value) {
    const auto nearest = static_cast<float>(value);
    if (std::isnan(value) || nearest == value || (std::bit_cast<std::uint32_t>(nearest) & 1u) != 0)
        return nearest;
    const bool below = nearest < value;
    return std::nextafter(nearest, below ? std::numeric_limits<float>::infinity()
                                         : -std::numeric_limits<float>::infinity());
}

}  // namespace

std::size_t size_of(DType type) {
    return with_storage_type(type, [](auto value) { return sizeof(value); });
}

std::string_view name_of(DType type) {
    switch (type) {
        case DType::fp32: return "fp32";
        case DType::fp16: return "fp16";
        case DType::bf16: return "bf16";
        case DType::fp64: return "fp64";
        case DType::int8: return "int8";
        case DType::int32: return "int32";
        case DType::int64: return "int64";
    }
    throw std::logic_error("a DType outside its enumeration");
}

DType dtype_from_name(std::string_view name) {
    std::string known;
    for (const DType type : kAllDTypes) {
        if (name_of(type) == name) return type;
        known += (known.empty() ? "" : ", ") + std::string(name_of(type));
    }
    throw std::invalid_argument(fmt::format("unknown type '{}'; known are {}", name, known));
}

bool is_floating(DType type) {
    return type == DType::fp32 || type == DType::fp16 || type == DType::bf16 || type == DType::fp64;
}

double load_element(DType type, const void* data, std::size_t index) {
    return with_storage_type(type, [&](auto storage) -> double {
        using Storage = decltype(storage);
        std::memcpy(&storage, static_cast<const std::byte*>(data) + index * sizeof(Storage),
                    sizeof(Storage));
        if constexpr (std::is_arithmetic_v<Storage>)
            return static_cast<double>(storage);
        else
            return to_float(storage);
    });
}

void store_element(DType type, void* data, std::size_t index, double value) {
    with_storage_type(type, [&](auto storage) {
        using Storage = decltype(storage);
        if constexpr (std::is_same_v<Storage, Half>)
            storage = to_half(to_float_odd(value));
        else if constexpr (std::is_same_v<Storage, BFloat16>)
            storage = to_bfloat16(to_float_odd(value));
        else
            storage = static_cast<Storage>(value);
        std::memcpy(static_cast<std::byte*>(data) + index * sizeof(Storage), &storage,
                    sizeof(Storage));
    });
}

}  // namespace zeroproof::memory
