// LayerNorm (Ba et al.) and RMSNorm (Zhang and Sennrich) over the columns of a matrix.
#pragma once

#include <span>

#include "reference/tensor/matrix.h"
#include "reference/tensor/scalar.h"

namespace zeroproof::reference {

enum class Normalization {
    layer,  // (x - mean) / sqrt(variance + epsilon) * weight + bias
    rms     // x / sqrt(mean of x^2 + epsilon) * weight
};

// What backward needs again of each row: its mean (0 for rms) and 1 / its deviation. rows x 2.
template <typename T>
using RowStatistics = Matrix<Compute<T>>;

// y = norm(x). `bias` is empty for rms.
template <typename T>
void normalize(Normalization kind, Matrix<const T> x, std::span<const T> weight,
               std::span<const T> bias, Compute<T> epsilon, Matrix<T> y,
               RowStatistics<T> statistics);

// Adds the gradient of x to `x_gradient`, and those of weight and bias to theirs. Takes two rows of
// `space` while it runs.
template <typename T>
void normalize_backward(Normalization kind, Matrix<const T> x, std::span<const T> weight,
                        Matrix<const Compute<T>> statistics, Matrix<const T> y_gradient,
                        Matrix<T> x_gradient, std::span<T> weight_gradient,
                        std::span<T> bias_gradient, memory::Space& space);

}  // namespace zeroproof::reference
