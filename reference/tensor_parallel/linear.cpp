#include "reference/tensor_parallel/linear.h"

#include "reference/tensor/matmul.h"

namespace zeroproof::reference {

namespace {

// Starts to sum a matrix whose rows follow one another over the group, in place.
template <typename T>
collectives::Request sum_over(collectives::Communicator* group, Matrix<T> parts) {
    if (group == nullptr) return {};
    auto* data = reinterpret_cast<std::byte*>(parts.data);
    return group->all_reduce(data, data, parts.rows * parts.columns, dtype_of<T>(),
                             collectives::Reduction::sum);
}

}  // namespace

template <typename T>
void column_parallel(Matrix<const T> x, Matrix<const T> weight, Matrix<T> y) {
    matmul<T, T>(x, weight, y, {.b_transposed = true});
}

template <typename T>
void column_parallel_backward(Matrix<const T> x, Matrix<const T> weight, Matrix<const T> y_gradient,
                              Matrix<T> x_gradient, Matrix<T> weight_gradient,
                              collectives::Communicator* group) {
    matmul<T, T>(y_gradient, weight, x_gradient, {});
    collectives::Request summing = sum_over(group, x_gradient);
    matmul<T, T>(y_gradient, x, weight_gradient, {.a_transposed = true, .accumulate = true});
    summing.wait();
}

template <typename T>
void row_parallel(Matrix<const T> x, Matrix<const T> weight, Matrix<T> y,
                  collectives::Communicator* group) {
    matmul<T, T>(x, weight, y, {.b_transposed = true});
    sum_over(group, y).wait();
}

template <typename T>
void row_parallel_backward(Matrix<const T> x, Matrix<const T> weight, Matrix<const T> y_gradient,
                           Matrix<T> x_gradient, Matrix<T> weight_gradient) {
    matmul<T, T>(y_gradient, weight, x_gradient, {});
    matmul<T, T>(y_gradient, x, weight_gradient, {.a_transposed = true, .accumulate = true});
}

#define ZEROPROOF_INSTANTIATE(T)                                                              \
    template void column_parallel(Matrix<const T>, Matrix<const T>, Matrix<T>);               \
    template void column_parallel_backward(Matrix<const T>, Matrix<const T>, Matrix<const T>, \
                                           Matrix<T>, Matrix<T>, collectives::Communicator*); \
    template void row_parallel(Matrix<const T>, Matrix<const T>, Matrix<T>,                   \
                               collectives::Communicator*);                                   \
    template void row_parallel_backward(Matrix<const T>, Matrix<const T>, Matrix<const T>,    \
                                        Matrix<T>, Matrix<T>);
ZEROPROOF_INSTANTIATE(float)
ZEROPROOF_INSTANTIATE(double)
ZEROPROOF_INSTANTIATE(Half)
ZEROPROOF_INSTANTIATE(BFloat16)

}  // namespace zeroproof::reference
