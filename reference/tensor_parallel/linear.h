// Linear layers whose weight is cut over the ranks of a tensor-parallel group (Shoeybi et al.,
// Megatron-LM, section 3). A weight has a row for each output, as in y = x weight^T.
//
//                  column-parallel: rows of the weight     row-parallel: columns of the weight
//   forward        each rank has some columns of y         each has a part of the sum: all-reduce
//   backward       each has a part of dx: all-reduce       each has its columns of dx
//
// One after the other they need one all-reduce in forward and one in backward. A group is null
// where nothing is cut.
#pragma once

#include "collectives/communicator.h"
#include "reference/tensor/matrix.h"
#include "reference/tensor/scalar.h"

namespace zeroproof::reference {

template <typename T>
void column_parallel(Matrix<const T> x, Matrix<const T> weight, Matrix<T> y);
// The whole gradient of x, and adds that of the weight's part to its.
template <typename T>
void column_parallel_backward(Matrix<const T> x, Matrix<const T> weight, Matrix<const T> y_gradient,
                              Matrix<T> x_gradient, Matrix<T> weight_gradient,
                              collectives::Communicator* group);

// The whole y, the same on all ranks.
template <typename T>
void row_parallel(Matrix<const T> x, Matrix<const T> weight, Matrix<T> y,
                  collectives::Communicator* group);
template <typename T>
void row_parallel_backward(Matrix<const T> x, Matrix<const T> weight, Matrix<const T> y_gradient,
                           Matrix<T> x_gradient, Matrix<T> weight_gradient);

}  // namespace zeroproof::reference
