// The output layer and the loss in one: the negative log likelihood of the next token.
#pragma once

#include <cstdint>
#include <span>

#include "reference/tensor/matrix.h"
#include "reference/tensor/scalar.h"

namespace zeroproof::reference {

// Rows of logits that are live at a time: never all of tokens x vocabulary.
inline constexpr std::size_t kLogitTile = 256;

// The mean over all rows of -log softmax(x weight^T)[target]. A tile of logits is live.
template <typename T>
double cross_entropy(Matrix<const T> x, Matrix<const T> weight,
                     std::span<const std::int32_t> targets, memory::Space& space);

// The gradient of x, and adds that of the weight to its, both times `scale`. Logits are computed
// again, a tile at a time.
template <typename T>
void cross_entropy_backward(Matrix<const T> x, Matrix<const T> weight,
                            std::span<const std::int32_t> targets, Compute<T> scale,
                            Matrix<T> x_gradient, Matrix<T> weight_gradient, memory::Space& space);

}  // namespace zeroproof::reference
