#include "collectives/reduce.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace zeroproof::collectives {

namespace {

using memory::BFloat16;
using memory::Half;

// Elements reduced at a time: a cache line of each input, all inputs side by side. So many streams
// keep the memory busy where one after the other does not, and so few accumulators stay in
// registers.
template <typename Storage>
constexpr std::size_t kLanes = 64 / sizeof(Storage);
// Bytes of results that gather before they are written, output by output. They stay in the
// first-level cache.
constexpr std::size_t kBlockBytes = 16 * 1024;

template <typename Storage>
struct Accumulation {
    using Type = Storage;
};
template <>
struct Accumulation<Half> {
    using Type = float;
};
template <>
struct Accumulation<BFloat16> {
    using Type = float;
};
// Unsigned, so that sums wrap; 64 bits, so that a mean sees the whole sum of narrower types.
template <>
struct Accumulation<std::int8_t> {
    using Type = std::int64_t;
};
template <>
struct Accumulation<std::int32_t> {
    using Type = std::int64_t;
};

template <typename Accumulator, typename Storage>
Accumulator widen(Storage value) {
    if constexpr (std::is_arithmetic_v<Storage>)
        return static_cast<Accumulator>(value);
    else
        return memory::to_float(value);
}

template <typename Storage, typename Accumulator>
Storage narrow(Accumulator value) {
    if constexpr (std::is_same_v<Storage, Half>)
        return memory::to_half(value);
    else if constexpr (std::is_same_v<Storage, BFloat16>)
        return memory::to_bfloat16(value);
    else
        return static_cast<Storage>(value);
}

template <Reduction kReduction, typename Accumulator>
Accumulator combine(Accumulator a, Accumulator b) {
    if constexpr (kReduction == Reduction::max || kReduction == Reduction::min) {
        if constexpr (std::is_floating_point_v<Accumulator>)
            if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
        return kReduction == Reduction::max ? std::max(a, b) : std::min(a, b);
    } else if constexpr (std::is_integral_v<Accumulator>) {
        return static_cast<Accumulator>(static_cast<std::uint64_t>(a) +
                                        static_cast<std::uint64_t>(b));
    } else {
        return a + b;
    }
}

// Reduces `lanes` elements that lie `offset` bytes into each of `inputs`. Copies each, since the
// address may lie unaligned; of a constant number of lanes, the copy is a load.
template <Reduction kReduction, typename Storage>
void reduce_lanes(std::span<const std::byte* const> inputs, std::size_t offset, std::size_t lanes,
                  Storage* result) {
    using Accumulator = typename Accumulation<Storage>::Type;
    constexpr std::size_t kAll = kLanes<Storage>;
    std::array<Accumulator, kAll> total{};
    std::array<Storage, kAll> part{};
    std::memcpy(part.data(), inputs[0] + offset, lanes * sizeof(Storage));
    for (std::size_t i = 0; i < kAll; ++i) total[i] = widen<Accumulator>(part[i]);
    for (const std::byte* input : inputs.subspan(1)) {
        std::memcpy(part.data(), input + offset, lanes * sizeof(Storage));
        for (std::size_t i = 0; i < kAll; ++i)
            total[i] = combine<kReduction>(total[i], widen<Accumulator>(part[i]));
    }
    if constexpr (kReduction == Reduction::mean) {
        const auto ranks = static_cast<Accumulator>(inputs.size());
        for (Accumulator& lane : total) lane /= ranks;
    }
    for (std::size_t i = 0; i < kAll; ++i) part[i] = narrow<Storage>(total[i]);
    std::memcpy(result, part.data(), lanes * sizeof(Storage));
}

template <Reduction kReduction, typename Storage>
void reduce_blocks(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
                   std::size_t elements) {
    constexpr std::size_t kBlock = kBlockBytes / sizeof(Storage);
    constexpr std::size_t kAll = kLanes<Storage>;
    std::array<Storage, kBlock> results;
    for (std::size_t first = 0; first < elements; first += kBlock) {
        const std::size_t count = std::min(kBlock, elements - first);
        const std::size_t offset = first * sizeof(Storage);
        std::size_t done = 0;
        for (; done + kAll <= count; done += kAll)
            reduce_lanes<kReduction>(inputs, offset + done * sizeof(Storage), kAll,
                                     results.data() + done);
        if (done < count)
            reduce_lanes<kReduction>(inputs, offset + done * sizeof(Storage), count - done,
                                     results.data() + done);
        for (std::byte* output : outputs)
            std::memcpy(output + offset, results.data(), count * sizeof(Storage));
    }
}

}  // namespace

void reduce_elements(DType type, Reduction reduction, std::span<const std::byte* const> inputs,
                     std::span<std::byte* const> outputs, std::size_t elements) {
    memory::with_storage_type(type, [&](auto storage) {
        using Storage = decltype(storage);
        switch (reduction) {
            case Reduction::none: break;
            case Reduction::sum:
                return reduce_blocks<Reduction::sum, Storage>(inputs, outputs, elements);
            case Reduction::mean:
                return reduce_blocks<Reduction::mean, Storage>(inputs, outputs, elements);
            case Reduction::max:
                return reduce_blocks<Reduction::max, Storage>(inputs, outputs, elements);
            case Reduction::min:
                return reduce_blocks<Reduction::min, Storage>(inputs, outputs, elements);
        }
    });
}

void divide_elements(DType type, std::byte* data, std::size_t elements, int ranks) {
    memory::with_storage_type(type, [&](auto storage) {
        using Storage = decltype(storage);
        using Accumulator = typename Accumulation<Storage>::Type;
        for (std::size_t i = 0; i < elements; ++i) {
            Storage value;
            std::memcpy(&value, data + i * sizeof(Storage), sizeof(Storage));
            value = narrow<Storage>(static_cast<Accumulator>(widen<Accumulator>(value) /
                                                             static_cast<Accumulator>(ranks)));
            std::memcpy(data + i * sizeof(Storage), &value, sizeof(Storage));
        }
    });
}

}  // namespace zeroproof::collectives
