// The global gradient norm, and whether a gradient is finite at all.
#pragma once

#include <cstddef>

#include "collectives/communicator.h"
#include "reference/model.h"

namespace zeroproof::reference {

// Summed over elements in double: exact for gradients whose squares fit 53 bits together.
struct GradientMeasure {
    double sum_of_squares = 0;  // of g / divisor
    double non_finite = 0;      // how many elements are infinite or NaN

    void add(ConstTensor gradient, float divisor);
    // Sums over the ranks of `group`, each of which has measured what it owns.
    void reduce(collectives::Communicator& group);
};

// Factor for the gradients so that their norm is at most `bound`; 1 when `bound` is 0.
float clip_coefficient(double norm, double bound);

}  // namespace zeroproof::reference
