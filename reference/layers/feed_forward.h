// What stands between the two products of a feed-forward layer.
#pragma once

#include <span>

#include "reference/tensor/matrix.h"
#include "reference/tensor/scalar.h"

namespace zeroproof::reference {

enum class Nonlinearity {
    gelu,   // x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), as in GPT-2
    swiglu  // x / (1 + e^-x) of the first half of the columns, times the second half (Shazeer)
};

// Columns that the first product has for one of the second.
inline std::size_t columns_in(Nonlinearity kind) {
    return kind == Nonlinearity::swiglu ? 2 : 1;
}

// y = f(x), x with columns_in(kind) times the columns of y.
template <typename T>
void activate(Nonlinearity kind, Matrix<const T> x, Matrix<T> y);

// The gradient of x in place of x.
template <typename T>
void activate_backward(Nonlinearity kind, Matrix<T> x, Matrix<const T> y_gradient);

}  // namespace zeroproof::reference
