#include "reference/layers/normalization.h"

#include <cmath>

namespace zeroproof::reference {

template <typename T>
void normalize(Normalization kind, Matrix<const T> x, std::span<const T> weight,
               std::span<const T> bias, Compute<T> epsilon, Matrix<T> y,
               RowStatistics<T> statistics) {
    using C = Compute<T>;
    const auto columns = static_cast<C>(x.columns);
    for (std::size_t i = 0; i < x.rows; ++i) {
        const auto from = x.row(i);
        C mean = 0;
        if (kind == Normalization::layer) {
            for (const T value : from) mean += widen(value);
            mean /= columns;
        }
        C squares = 0;
        for (const T value : from) squares += (widen(value) - mean) * (widen(value) - mean);
        const C scale = 1 / std::sqrt(squares / columns + epsilon);
        const auto to = y.row(i);
        if (kind == Normalization::layer)
            for (std::size_t j = 0; j < to.size(); ++j)
                to[j] =
                    narrow<T>((widen(from[j]) - mean) * scale * widen(weight[j]) + widen(bias[j]));
        else
            for (std::size_t j = 0; j < to.size(); ++j)
                to[j] = narrow<T>(widen(from[j]) * scale * widen(weight[j]));
        statistics.row(i)[0] = mean;
        statistics.row(i)[1] = scale;
    }
}

template <typename T>
void normalize_backward(Normalization kind, Matrix<const T> x, std::span<const T> weight,
                        Matrix<const Compute<T>> statistics, Matrix<const T> y_gradient,
                        Matrix<T> x_gradient, std::span<T> weight_gradient,
                        std::span<T> bias_gradient, memory::Space& space) {
    using C = Compute<T>;
    // Summed over all rows before they are rounded.
    memory::Buffer sums(space, memory::Category::activation, dtype_of<C>(), 2 * x.columns);
    sums.fill_zero();
    const auto of_parameters = as_matrix<C>(sums, 2, x.columns);
    const auto of_weight = of_parameters.row(0);
    const auto of_bias = of_parameters.row(1);
    const auto columns = static_cast<C>(x.columns);
    for (std::size_t i = 0; i < x.rows; ++i) {
        const auto from = x.row(i);
        const auto dy = y_gradient.row(i);
        const C mean = statistics.row(i)[0];
        const C scale = statistics.row(i)[1];
        // With n = (x - mean) * scale and dn = dy * weight:
        //   dx = scale * (dn - [mean of dn] - n * mean of (dn * n)), [..] for layer alone
        C mean_dn = 0;
        C mean_dn_n = 0;
        for (std::size_t j = 0; j < x.columns; ++j) {
            const C n = (widen(from[j]) - mean) * scale;
            const C g = widen(dy[j]);
            const C dn = g * widen(weight[j]);
            mean_dn += dn;
            mean_dn_n += dn * n;
            of_weight[j] += g * n;
            of_bias[j] += g;
        }
        mean_dn = kind == Normalization::layer ? mean_dn / columns : C{0};
        mean_dn_n /= columns;
        const auto dx = x_gradient.row(i);
        for (std::size_t j = 0; j < x.columns; ++j) {
            const C n = (widen(from[j]) - mean) * scale;
            const C dn = widen(dy[j]) * widen(weight[j]);
            dx[j] = narrow<T>(widen(dx[j]) + scale * (dn - mean_dn - n * mean_dn_n));
        }
    }
    for (std::size_t j = 0; j < weight_gradient.size(); ++j)
        weight_gradient[j] = narrow<T>(widen(weight_gradient[j]) + of_weight[j]);
    for (std::size_t j = 0; j < bias_gradient.size(); ++j)
        bias_gradient[j] = narrow<T>(widen(bias_gradient[j]) + of_bias[j]);
}

#define ZEROPROOF_INSTANTIATE(T)                                                           \
    template void normalize(Normalization, Matrix<const T>, std::span<const T>,            \
                            std::span<const T>, Compute<T>, Matrix<T>, RowStatistics<T>);  \
    template void normalize_backward(Normalization, Matrix<const T>, std::span<const T>,   \
                                     Matrix<const Compute<T>>, Matrix<const T>, Matrix<T>, \
                                     std::span<T>, std::span<T>, memory::Space&);
ZEROPROOF_INSTANTIATE(float)
ZEROPROOF_INSTANTIATE(double)
ZEROPROOF_INSTANTIATE(Half)
ZEROPROOF_INSTANTIATE(BFloat16)

}  // namespace zeroproof::reference
