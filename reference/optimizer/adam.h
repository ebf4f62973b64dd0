// Adam (Kingma and Ba, algorithm 1) with bias correction, and AdamW (Loshchilov and Hutter).
#pragma once

#include <cstdint>
#include <span>

#include "reference/options.h"

namespace zeroproof::reference {

// From what lies in the gradient buffer to what Adam sees: g / divisor * clip.
struct GradientScaling {
    float divisor = 1;  // loss scale times micro-steps; the ranks' mean is taken already
    float clip = 1;     // min(1, bound / norm)
};

// One step on some elements. `step` counts from 1. All spans and `gradient` have the same length.
void adam_step(const ParameterGroup& group, std::int64_t step, GradientScaling scaling,
               ConstTensor gradient, std::span<float> master, std::span<float> momentum,
               std::span<float> variance);

}  // namespace zeroproof::reference
