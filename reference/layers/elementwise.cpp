#include "reference/layers/elementwise.h"

#include <algorithm>
#include <array>

namespace zeroproof::reference {

namespace {

// Calls `use(column, values)` for the row's elements in blocks, in the compute type and after
// dropout; `load(column)` gives them before.
template <typename C, typename Load, typename Use>
void for_dropped_row(std::span<const Dropout> dropout, std::size_t rows_of_sample, std::size_t row,
                     std::size_t columns, Load&& load, Use&& use) {
    std::array<C, 256> block;
    for (std::size_t first = 0; first < columns; first += block.size()) {
        const std::span values(block.data(), std::min(block.size(), columns - first));
        for (std::size_t j = 0; j < values.size(); ++j) values[j] = load(first + j);
        if (!dropout.empty())
            dropout[row / rows_of_sample].apply((row % rows_of_sample) * columns + first, values);
        use(first, values);
    }
}

}  // namespace

template <typename T>
void add_bias(std::span<const T> bias, Matrix<T> y) {
    if (bias.empty()) return;
    for (std::size_t i = 0; i < y.rows; ++i) {
        T* row = y.row(i).data();
        for (std::size_t j = 0; j < y.columns; ++j)
            row[j] = narrow<T>(widen(row[j]) + widen(bias[j]));
    }
}

template <typename T>
void bias_dropout_residual(std::span<const T> bias, std::span<const Dropout> dropout,
                           std::size_t rows_of_sample, Matrix<const T> residual, Matrix<T> y) {
    using C = Compute<T>;
    for (std::size_t i = 0; i < y.rows; ++i) {
        T* row = y.row(i).data();
        const T* beside = residual.rows == 0 ? nullptr : residual.row(i).data();
        for_dropped_row<C>(
            dropout, rows_of_sample, i, y.columns,
            [&](std::size_t j) {
                return bias.empty() ? widen(row[j]) : widen(row[j]) + widen(bias[j]);
            },
            [&](std::size_t first, std::span<const C> values) {
                for (std::size_t j = 0; j < values.size(); ++j)
                    row[first + j] = narrow<T>(
                        beside == nullptr ? values[j] : values[j] + widen(beside[first + j]));
            });
    }
}

template <typename T>
void dropout_backward(std::span<const Dropout> dropout, std::size_t rows_of_sample,
                      Matrix<const T> gradient, Matrix<T> y) {
    using C = Compute<T>;
    for (std::size_t i = 0; i < y.rows; ++i) {
        const T* from = gradient.row(i).data();
        T* row = y.row(i).data();
        for_dropped_row<C>(
            dropout, rows_of_sample, i, y.columns, [&](std::size_t j) { return widen(from[j]); },
            [&](std::size_t first, std::span<const C> values) {
                for (std::size_t j = 0; j < values.size(); ++j)
                    row[first + j] = narrow<T>(values[j]);
            });
    }
}

template <typename T>
void bias_backward(Matrix<const T> gradient, std::span<T> bias_gradient, memory::Space& space) {
    using C = Compute<T>;
    if (bias_gradient.empty()) return;
    memory::Buffer row(space, memory::Category::activation, dtype_of<C>(), gradient.columns);
    row.fill_zero();
    C* sums = as_matrix<C>(row, 1, gradient.columns).data;
    for (std::size_t i = 0; i < gradient.rows; ++i) {
        const T* from = gradient.row(i).data();
        for (std::size_t j = 0; j < gradient.columns; ++j) sums[j] += widen(from[j]);
    }
    for (std::size_t j = 0; j < gradient.columns; ++j)
        bias_gradient[j] = narrow<T>(widen(bias_gradient[j]) + sums[j]);
}

#define ZEROPROOF_INSTANTIATE(T)                                                                   \
    template void add_bias(std::span<const T>, Matrix<T>);                                         \
    template void bias_dropout_residual(std::span<const T>, std::span<const Dropout>, std::size_t, \
                                        Matrix<const T>, Matrix<T>);                               \
    template void dropout_backward(std::span<const Dropout>, std::size_t, Matrix<const T>,         \
                                   Matrix<T>);                                                     \
    template void bias_backward(Matrix<const T>, std::span<T>, memory::Space&);
ZEROPROOF_INSTANTIATE(float)
ZEROPROOF_INSTANTIATE(double)
ZEROPROOF_INSTANTIATE(Half)
ZEROPROOF_INSTANTIATE(BFloat16)

}  // namespace zeroproof::reference
