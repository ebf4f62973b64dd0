// The arithmetic of a reduction over ranks, for a range of elements.
#pragma once

#include <cstddef>
#include <span>

#include "collectives/communicator.h"

namespace zeroproof::collectives {

// Reduces inputs[0], inputs[1], ... element by element, in that order, into each of `outputs`.
// Outputs may be inputs. fp16 and bf16 accumulate in fp32. Addresses need no alignment.
void reduce_elements(DType type, Reduction reduction, std::span<const std::byte* const> inputs,
                     std::span<std::byte* const> outputs, std::size_t elements);

// Makes a mean of a sum: divides by the number of ranks. Integers are truncated toward zero.
void divide_elements(DType type, std::byte* data, std::size_t elements, int ranks);

}  // namespace zeroproof::collectives
