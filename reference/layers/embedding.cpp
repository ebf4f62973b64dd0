#include "reference/layers/embedding.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace zeroproof::reference {

namespace {

// Adds the sum of the rows of y that `uses` names to `row`.
template <typename T>
void add_rows(Matrix<const T> y, std::span<const std::int32_t> uses, std::span<T> row,
              std::span<Compute<T>> sums) {
    std::ranges::fill(sums, Compute<T>{0});
    for (const std::int32_t use : uses) {
        const T* from = y.row(static_cast<std::size_t>(use)).data();
        for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += widen(from[j]);
    }
    for (std::size_t j = 0; j < sums.size(); ++j) row[j] = narrow<T>(widen(row[j]) + sums[j]);
}

}  // namespace

template <typename T>
void embed(std::span<const std::int32_t> tokens, Matrix<const T> table, Matrix<const T> positions,
           Matrix<T> y) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (tokens[i] < 0 || static_cast<std::size_t>(tokens[i]) >= table.rows)
            throw std::out_of_range(
                fmt::format("token {}: the vocabulary has {}", tokens[i], table.rows));
        const auto from = table.row(static_cast<std::size_t>(tokens[i]));
        const auto to = y.row(i);
        std::ranges::copy(from, to.begin());
        if (positions.rows == 0) continue;
        const auto position = positions.row(i % positions.rows);
        for (std::size_t j = 0; j < to.size(); ++j)
            to[j] = narrow<T>(widen(from[j]) + widen(position[j]));
    }
}

template <typename T>
void embed_backward(std::span<const std::int32_t> tokens, Matrix<const T> y_gradient,
                    Matrix<T> table_gradient, Matrix<T> positions_gradient, memory::Space& space) {
    using C = Compute<T>;
    memory::Buffer sums_of_row(space, memory::Category::activation, dtype_of<C>(),
                               y_gradient.columns);
    memory::Buffer numbers(space, memory::Category::activation, memory::DType::int32,
                           tokens.size());
    const auto sums = as_matrix<C>(sums_of_row, 1, y_gradient.columns).row(0);
    const auto order = as_matrix<std::int32_t>(numbers, 1, tokens.size()).row(0);

    // Uses of one row of the table side by side, in the order in which they stand.
    std::iota(order.begin(), order.end(), 0);
    const auto token_at = [&](std::int32_t use) { return tokens[static_cast<std::size_t>(use)]; };
    std::ranges::sort(order, [&](std::int32_t a, std::int32_t b) {
        return token_at(a) != token_at(b) ? token_at(a) < token_at(b) : a < b;
    });
    for (std::size_t begin = 0; begin < order.size();) {
        std::size_t end = begin;
        while (end < order.size() && token_at(order[end]) == token_at(order[begin])) ++end;
        add_rows<T>(y_gradient, order.subspan(begin, end - begin),
                    table_gradient.row(static_cast<std::size_t>(token_at(order[begin]))), sums);
        begin = end;
    }

    for (std::size_t position = 0; position < positions_gradient.rows; ++position) {
        std::size_t uses = 0;
        for (std::size_t i = position; i < tokens.size(); i += positions_gradient.rows)
            order[uses++] = static_cast<std::int32_t>(i);
        add_rows<T>(y_gradient, order.first(uses), positions_gradient.row(position), sums);
    }
}

#define ZEROPROOF_INSTANTIATE(T)                                                            \
    template void embed(std::span<const std::int32_t>, Matrix<const T>, Matrix<const T>,    \
                        Matrix<T>);                                                         \
    template void embed_backward(std::span<const std::int32_t>, Matrix<const T>, Matrix<T>, \
                                 Matrix<T>, memory::Space&);
ZEROPROOF_INSTANTIATE(float)
ZEROPROOF_INSTANTIATE(double)
ZEROPROOF_INSTANTIATE(Half)
ZEROPROOF_INSTANTIATE(BFloat16)

}  // namespace zeroproof::reference
