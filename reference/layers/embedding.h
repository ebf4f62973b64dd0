// Rows of a table, one for each token.
#pragma once

#include <cstdint>
#include <span>

#include "reference/tensor/matrix.h"
#include "reference/tensor/scalar.h"

namespace zeroproof::reference {

// Row i of y is that of tokens[i] in `table`, plus, unless `positions` is empty, row i modulo its
// number of rows of that. Throws std::out_of_range for a token beyond the table.
template <typename T>
void embed(std::span<const std::int32_t> tokens, Matrix<const T> table, Matrix<const T> positions,
           Matrix<T> y);

// Adds each row of the gradient of y to the rows that it came from: summed over all uses of a row,
// then rounded once. Takes a row, and a number for each token, of `space` while it runs.
template <typename T>
void embed_backward(std::span<const std::int32_t> tokens, Matrix<const T> y_gradient,
                    Matrix<T> table_gradient, Matrix<T> positions_gradient, memory::Space& space);

}  // namespace zeroproof::reference
