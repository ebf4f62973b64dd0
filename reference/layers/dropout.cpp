#include "reference/layers/dropout.h"

#include <algorithm>

#include "reference/tensor/philox.h"

namespace zeroproof::reference {

template <typename T>
void Dropout::apply(std::uint64_t first, std::span<T> values) const {
    if (probability == 0) return;
    const T scale = T{1} / (T{1} - static_cast<T>(probability));
    // Numbers from 0 to 2^32 - 1, of which so many drop.
    const auto dropping = static_cast<std::uint64_t>(double{probability} * 0x1p32);
    const std::uint64_t last = first + values.size();
    for (std::uint64_t four = first / 4; four * 4 < last; ++four) {
        const auto numbers =
            philox({static_cast<std::uint32_t>(four), static_cast<std::uint32_t>(sample),
                    static_cast<std::uint32_t>(sample >> 32),
                    layer * 4 + static_cast<std::uint32_t>(site)},
                   {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
        const std::uint64_t begin = std::max(first, four * 4);
        const std::uint64_t end = std::min(last, four * 4 + 4);
        for (std::uint64_t element = begin; element < end; ++element)
            values[element - first] *= numbers[element % 4] < dropping ? T{0} : scale;
    }
}

template void Dropout::apply(std::uint64_t, std::span<float>) const;
template void Dropout::apply(std::uint64_t, std::span<double>) const;

}  // namespace zeroproof::reference
