// Dropout whose random numbers are found by counting, so that a recomputation, and whoever holds a
// part of a tensor, draws the same ones.
#pragma once

#include <cstdint>
#include <span>

namespace zeroproof::reference {

// Where in a model dropout is applied.
enum class DropoutSite : std::uint32_t { embedding, probabilities, attention, feed_forward };

// The dropout of one sample at one site of one layer.
struct Dropout {
    float probability = 0;  // of an element to be dropped; 0: none is
    std::uint64_t seed = 0;
    std::uint64_t sample = 0;  // of the whole run, whichever rank it is on
    std::uint32_t layer = 0;
    DropoutSite site = DropoutSite::embedding;

    // Multiplies elements [first, first + values.size()) of the sample by 1 / (1 - p) or by 0.
    // Elements are counted in the whole tensor, also where a rank holds a part.
    template <typename T>
    void apply(std::uint64_t first, std::span<T> values) const;
};

}  // namespace zeroproof::reference
