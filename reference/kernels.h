// Element-wise arithmetic on tensors.
#pragma once

#include <span>

#include "reference/model.h"

namespace zeroproof::reference {

// target += source, each sum rounded to the type. Same type, same size.
void add_into(Tensor target, ConstTensor source);
// target += source, rounded to the type.
void add_into(Tensor target, std::span<const float> source);
// target *= factor, rounded to the type.
void scale(Tensor target, float factor);
// Rounds to nearest even.
void cast_into(Tensor target, std::span<const float> source);
// Exact: every floating type here is a subset of fp32 (fp64 excepted).
void widen_into(std::span<float> target, ConstTensor source);

}  // namespace zeroproof::reference
