// What is done to each element between two products.
#pragma once

#include <span>

#include "reference/layers/dropout.h"
#include "reference/tensor/matrix.h"
#include "reference/tensor/scalar.h"

namespace zeroproof::reference {

// y += bias, a row; an empty bias adds nothing.
template <typename T>
void add_bias(std::span<const T> bias, Matrix<T> y);

// y = dropout(y + bias) + residual: how a sublayer joins the stream. `dropout` has one entry for
// each sample, which has `rows_of_sample` rows, or none. Either of bias and residual may be empty.
template <typename T>
void bias_dropout_residual(std::span<const T> bias, std::span<const Dropout> dropout,
                           std::size_t rows_of_sample, Matrix<const T> residual, Matrix<T> y);

// y = dropout applied to the gradient.
template <typename T>
void dropout_backward(std::span<const Dropout> dropout, std::size_t rows_of_sample,
                      Matrix<const T> gradient, Matrix<T> y);

// Adds the sum of all rows to `bias_gradient`, rounded once. Takes a row of `space` while it runs.
template <typename T>
void bias_backward(Matrix<const T> gradient, std::span<T> bias_gradient, memory::Space& space);

}  // namespace zeroproof::reference
