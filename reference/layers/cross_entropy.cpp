#include "reference/layers/cross_entropy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "reference/layers/exponential.h"
#include "reference/tensor/matmul.h"

namespace zeroproof::reference {

namespace {

using memory::Category;

std::size_t checked(std::int32_t target, std::size_t vocabulary) {
    if (target < 0 || static_cast<std::size_t>(target) >= vocabulary)
        throw std::out_of_range(fmt::format("token {}: the vocabulary has {}", target, vocabulary));
    return static_cast<std::size_t>(target);
}

// e^(logit - largest) in place of each logit. Returns their sum.
template <typename C>
C exponentials(std::span<C> logits, C largest) {
    for (C& logit : logits) logit = exponential(logit - largest);
    C sum = 0;
    for (const C e : logits) sum += e;
    return sum;
}

}  // namespace

template <typename T>
double cross_entropy(Matrix<const T> x, Matrix<const T> weight,
                     std::span<const std::int32_t> targets, memory::Space& space) {
    using C = Compute<T>;
    const std::size_t vocabulary = weight.rows;
    memory::Buffer tile(space, Category::activation, dtype_of<C>(),
                        std::min(kLogitTile, x.rows) * vocabulary);
    double loss = 0;
    for (std::size_t first = 0; first < x.rows; first += kLogitTile) {
        const std::size_t rows = std::min(kLogitTile, x.rows - first);
        const auto logits = as_matrix<C>(tile, rows, vocabulary);
        matmul<T, C>(x.row_range(first, rows), weight, logits, {.b_transposed = true});
        for (std::size_t i = 0; i < rows; ++i) {
            const auto row = logits.row(i);
            const C of_target = row[checked(targets[first + i], vocabulary)];
            const C largest = *std::ranges::max_element(row);
            loss +=
                double{largest} + std::log(double{exponentials(row, largest)}) - double{of_target};
        }
    }
    return loss / static_cast<double>(x.rows);
}

template <typename T>
void cross_entropy_backward(Matrix<const T> x, Matrix<const T> weight,
                            std::span<const std::int32_t> targets, Compute<T> scale,
                            Matrix<T> x_gradient, Matrix<T> weight_gradient, memory::Space& space) {
    using C = Compute<T>;
    constexpr bool kIsRounded = !std::is_same_v<T, C>;
    const std::size_t vocabulary = weight.rows;
    const std::size_t tile_elements = std::min(kLogitTile, x.rows) * vocabulary;
    memory::Buffer tile(space, Category::activation, dtype_of<C>(), tile_elements);
    // Of 16-bit types: the tile as it is multiplied, and the weight's sum over tiles.
    memory::Buffer rounded(space, Category::activation, dtype_of<T>(),
                           kIsRounded ? tile_elements : 0);
    memory::Buffer sums(space, Category::activation, dtype_of<C>(),
                        kIsRounded ? vocabulary * weight.columns : 0);
    sums.fill_zero();
    const C each = scale / static_cast<C>(x.rows);
    for (std::size_t first = 0; first < x.rows; first += kLogitTile) {
        const std::size_t rows = std::min(kLogitTile, x.rows - first);
        const auto logits = as_matrix<C>(tile, rows, vocabulary);
        const auto x_rows = x.row_range(first, rows);
        matmul<T, C>(x_rows, weight, logits, {.b_transposed = true});
        // The gradient of a logit is its probability, less 1 for the target.
        for (std::size_t i = 0; i < rows; ++i) {
            const auto row = logits.row(i);
            const C factor = each / exponentials(row, *std::ranges::max_element(row));
            for (C& e : row) e *= factor;
            row[checked(targets[first + i], vocabulary)] -= each;
        }
        if constexpr (kIsRounded) {
            const auto as_multiplied = as_matrix<T>(rounded, rows, vocabulary);
            for (std::size_t i = 0; i < rows; ++i)
                for (std::size_t j = 0; j < vocabulary; ++j)
                    as_multiplied.row(i)[j] = narrow<T>(logits.row(i)[j]);
            matmul<T, T>(as_multiplied, weight, x_gradient.row_range(first, rows), {});
            matmul<T, C>(as_multiplied, x_rows, as_matrix<C>(sums, vocabulary, weight.columns),
                         {.a_transposed = true, .accumulate = true});
        } else {
            matmul<T, T>(logits, weight, x_gradient.row_range(first, rows), {});
            matmul<T, T>(logits, x_rows, weight_gradient,
                         {.a_transposed = true, .accumulate = true});
        }
    }
    if constexpr (kIsRounded) {
        const auto total = as_matrix<C>(sums, vocabulary, weight.columns);
        for (std::size_t i = 0; i < vocabulary; ++i)
            for (std::size_t j = 0; j < weight.columns; ++j) {
                T& element = weight_gradient.row(i)[j];
                element = narrow<T>(widen(element) + total.row(i)[j]);
            }
    }
}

#define ZEROPROOF_INSTANTIATE(T)                                                                   \
    template double cross_entropy(Matrix<const T>, Matrix<const T>, std::span<const std::int32_t>, \
                                  memory::Space&);                                                 \
    template void cross_entropy_backward(Matrix<const T>, Matrix<const T>,                         \
                                         std::span<const std::int32_t>, Compute<T>, Matrix<T>,     \
                                         Matrix<T>, memory::Space&);
ZEROPROOF_INSTANTIATE(float)
ZEROPROOF_INSTANTIATE(double)
ZEROPROOF_INSTANTIATE(Half)
ZEROPROOF_INSTANTIATE(BFloat16)

}  // namespace zeroproof::reference
