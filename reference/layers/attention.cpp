#include "reference/layers/attention.h"

#include <algorithm>
#include <cmath>

#include "reference/layers/exponential.h"
#include "reference/tensor/matmul.h"

namespace zeroproof::reference {

namespace {

template <typename T>
constexpr bool kIsRounded = !std::is_same_v<T, Compute<T>>;

// A tile of values as they are computed, and as they are multiplied: the same but for 16-bit types.
template <typename T>
class ScoreTile {
  public:
    ScoreTile(memory::Space& space, std::size_t sequence)
        : computed_(space, memory::Category::activation, dtype_of<Compute<T>>(),
                    std::min(kAttentionTile, sequence) * sequence),
          rounded_(space, memory::Category::activation, dtype_of<T>(),
                   kIsRounded<T> ? std::min(kAttentionTile, sequence) * sequence : 0) {}

    Matrix<Compute<T>> computed(std::size_t rows, std::size_t columns) {
        return as_matrix<Compute<T>>(computed_, rows, columns);
    }
    Matrix<const T> rounded(std::size_t rows, std::size_t columns) {
        if constexpr (kIsRounded<T>) {
            const auto from = computed(rows, columns);
            const auto to = as_matrix<T>(rounded_, rows, columns);
            for (std::size_t i = 0; i < rows; ++i)
                for (std::size_t j = 0; j < columns; ++j) to.row(i)[j] = narrow<T>(from.row(i)[j]);
            return to;
        } else {
            return computed(rows, columns);
        }
    }

  private:
    memory::Buffer computed_;
    memory::Buffer rounded_;
};

// The columns of one head, of the rows of one sample.
template <typename T>
struct Head {
    Matrix<T> q, k, v;
};
template <typename T>
Head<T> head_of(const AttentionShape& shape, Matrix<T> sample_rows, std::size_t head) {
    const std::size_t kv = head / (shape.heads / shape.kv_heads);
    const auto at = [&](std::size_t index) {
        return sample_rows.column_range(index * shape.head_size, shape.head_size);
    };
    return {at(head), at(shape.heads + kv), at(shape.heads + shape.kv_heads + kv)};
}

template <typename C>
C score_scale(const AttentionShape& shape) {
    return 1 / std::sqrt(static_cast<C>(shape.head_size));
}

std::uint64_t first_probability(const AttentionShape& shape, std::size_t head, std::size_t row) {
    return ((shape.first_head + head) * shape.sequence + row) * shape.sequence;
}

// The probabilities of a row before dropout, in place of its scores; zero for tokens that come
// later than the `seen` ones. Returns the logarithm of the sum of exponentials.
template <typename C>
C softmax(std::span<C> scores, std::size_t seen, C scale) {
    C largest = scores[0];
    for (std::size_t j = 1; j < seen; ++j) largest = std::max(largest, scores[j]);
    for (std::size_t j = 0; j < seen; ++j) scores[j] = exponential((scores[j] - largest) * scale);
    C sum = 0;
    for (std::size_t j = 0; j < seen; ++j) sum += scores[j];
    for (std::size_t j = 0; j < seen; ++j) scores[j] /= sum;
    std::fill(scores.begin() + static_cast<std::ptrdiff_t>(seen), scores.end(), C{0});
    return largest * scale + std::log(sum);
}

}  // namespace

template <typename T>
void attend(const AttentionShape& shape, Matrix<const T> qkv, std::span<const Dropout> dropout,
            Matrix<T> output, Matrix<Compute<T>> log_sums, memory::Space& space) {
    using C = Compute<T>;
    const std::size_t sequence = shape.sequence;
    const C scale = score_scale<C>(shape);
    ScoreTile<T> tile(space, sequence);
    for (std::size_t sample = 0; sample * sequence < qkv.rows; ++sample) {
        const auto rows_of_sample = qkv.row_range(sample * sequence, sequence);
        const auto output_rows = output.row_range(sample * sequence, sequence);
        for (std::size_t head = 0; head < shape.heads; ++head) {
            const Head<const T> of = head_of(shape, rows_of_sample, head);
            const auto sums = log_sums.row(sample * shape.heads + head);
            for (std::size_t first = 0; first < sequence; first += kAttentionTile) {
                const std::size_t rows = std::min(kAttentionTile, sequence - first);
                const std::size_t visible = first + rows;  // to the last row of the tile
                const auto scores = tile.computed(rows, visible);
                matmul<T, C>(of.q.row_range(first, rows), of.k.row_range(0, visible), scores,
                             {.b_transposed = true});
                for (std::size_t i = 0; i < rows; ++i) {
                    const auto row = scores.row(i);
                    const std::size_t seen = first + i + 1;
                    sums[first + i] = softmax(row, seen, scale);
                    if (!dropout.empty())
                        dropout[sample].apply(first_probability(shape, head, first + i),
                                              row.first(seen));
                }
                matmul<T, T>(tile.rounded(rows, visible), of.v.row_range(0, visible),
                             output_rows.row_range(first, rows)
                                 .column_range(head * shape.head_size, shape.head_size),
                             {});
            }
        }
    }
}

template <typename T>
void attend_backward(const AttentionShape& shape, Matrix<const T> qkv,
                     std::span<const Dropout> dropout, Matrix<const Compute<T>> log_sums,
                     Matrix<const T> output_gradient, Matrix<T> qkv_gradient,
                     memory::Space& space) {
    using C = Compute<T>;
    const std::size_t sequence = shape.sequence;
    const std::size_t queries_a_key = shape.heads / shape.kv_heads;
    const C scale = score_scale<C>(shape);
    ScoreTile<T> kept(space, sequence);     // probabilities after dropout
    ScoreTile<T> changes(space, sequence);  // gradients of probabilities, then of scores
    memory::Buffer probabilities(space, memory::Category::activation, dtype_of<C>(), sequence);
    // The gradient of a key and a value is a sum over tiles and queries, rounded at its end.
    memory::Buffer of_key(space, memory::Category::activation, dtype_of<C>(),
                          sequence * shape.head_size);
    memory::Buffer of_value(space, memory::Category::activation, dtype_of<C>(),
                            sequence * shape.head_size);
    const auto dk = as_matrix<C>(of_key, sequence, shape.head_size);
    const auto dv = as_matrix<C>(of_value, sequence, shape.head_size);
    const auto before = as_matrix<C>(probabilities, 1, sequence).row(0);  // dropout

    for (std::size_t sample = 0; sample * sequence < qkv.rows; ++sample) {
        const auto rows_of_sample = qkv.row_range(sample * sequence, sequence);
        const auto gradient_rows = qkv_gradient.row_range(sample * sequence, sequence);
        for (std::size_t head = 0; head < shape.heads; ++head) {
            const Head<const T> of = head_of(shape, rows_of_sample, head);
            const Head<T> gradient_of = head_of(shape, gradient_rows, head);
            const auto sums = log_sums.row(sample * shape.heads + head);
            const auto dy = output_gradient.row_range(sample * sequence, sequence)
                                .column_range(head * shape.head_size, shape.head_size);
            if (head % queries_a_key == 0) {
                of_key.fill_zero();
                of_value.fill_zero();
            }
            for (std::size_t first = 0; first < sequence; first += kAttentionTile) {
                const std::size_t rows = std::min(kAttentionTile, sequence - first);
                const std::size_t visible = first + rows;
                const auto dy_rows = dy.row_range(first, rows);
                const auto p = kept.computed(rows, visible);
                const auto ds = changes.computed(rows, visible);
                matmul<T, C>(of.q.row_range(first, rows), of.k.row_range(0, visible), p,
                             {.b_transposed = true});
                matmul<T, C>(dy_rows, of.v.row_range(0, visible), ds, {.b_transposed = true});
                for (std::size_t i = 0; i < rows; ++i) {
                    const std::size_t seen = first + i + 1;
                    const auto p_row = p.row(i);
                    const auto ds_row = ds.row(i);
                    for (std::size_t j = 0; j < seen; ++j)
                        before[j] = exponential(p_row[j] * scale - sums[first + i]);
                    std::copy_n(before.begin(), seen, p_row.begin());
                    std::fill(p_row.begin() + static_cast<std::ptrdiff_t>(seen), p_row.end(), C{0});
                    if (!dropout.empty()) {
                        const std::uint64_t at = first_probability(shape, head, first + i);
                        dropout[sample].apply(at, p_row.first(seen));
                        dropout[sample].apply(at, ds_row.first(seen));
                    }
                    // ds = p * (dp - sum of dp * p) of the softmax, then of the scale.
                    C mean = 0;
                    for (std::size_t j = 0; j < seen; ++j) mean += ds_row[j] * before[j];
                    for (std::size_t j = 0; j < seen; ++j)
                        ds_row[j] = before[j] * (ds_row[j] - mean) * scale;
                    std::fill(ds_row.begin() + static_cast<std::ptrdiff_t>(seen), ds_row.end(),
                              C{0});
                }
                const Matrix<const T> kept_rows = kept.rounded(rows, visible);
                const Matrix<const T> change_rows = changes.rounded(rows, visible);
                matmul<T, C>(kept_rows, dy_rows, dv.row_range(0, visible),
                             {.a_transposed = true, .accumulate = true});
                matmul<T, C>(change_rows, of.q.row_range(first, rows), dk.row_range(0, visible),
                             {.a_transposed = true, .accumulate = true});
                matmul<T, T>(change_rows, of.k.row_range(0, visible),
                             gradient_of.q.row_range(first, rows), {});
            }
            if ((head + 1) % queries_a_key == 0)
                for (std::size_t i = 0; i < sequence; ++i)
                    for (std::size_t j = 0; j < shape.head_size; ++j) {
                        gradient_of.k.row(i)[j] = narrow<T>(dk.row(i)[j]);
                        gradient_of.v.row(i)[j] = narrow<T>(dv.row(i)[j]);
                    }
        }
    }
}

template <typename T>
void rotate(const AttentionShape& shape, double base, Rotation direction, Matrix<T> qkv) {
    using C = Compute<T>;
    const std::size_t half = shape.head_size / 2;
    const double sign = direction == Rotation::forward ? 1 : -1;
    for (std::size_t position = 0; position < shape.sequence; ++position)
        for (std::size_t j = 0; j < half; ++j) {
            const double angle =
                static_cast<double>(position) *
                std::pow(base, -static_cast<double>(2 * j) / static_cast<double>(2 * half));
            const auto cosine = static_cast<C>(std::cos(angle));
            const auto sine = static_cast<C>(sign * std::sin(angle));
            for (std::size_t i = position; i < qkv.rows; i += shape.sequence)
                for (std::size_t head = 0; head < shape.heads + shape.kv_heads; ++head) {
                    T& first = qkv.row(i)[head * shape.head_size + j];
                    T& second = qkv.row(i)[head * shape.head_size + half + j];
                    const C x = widen(first);
                    const C y = widen(second);
                    first = narrow<T>(x * cosine - y * sine);
                    second = narrow<T>(x * sine + y * cosine);
                }
        }
}

#define ZEROPROOF_INSTANTIATE(T)                                                           \
    template void attend(const AttentionShape&, Matrix<const T>, std::span<const Dropout>, \
                         Matrix<T>, Matrix<Compute<T>>, memory::Space&);                   \
    template void attend_backward(const AttentionShape&, Matrix<const T>,                  \
                                  std::span<const Dropout>, Matrix<const Compute<T>>,      \
                                  Matrix<const T>, Matrix<T>, memory::Space&);             \
    template void rotate(const AttentionShape&, double, Rotation, Matrix<T>);
ZEROPROOF_INSTANTIATE(float)
ZEROPROOF_INSTANTIATE(double)
ZEROPROOF_INSTANTIATE(Half)
ZEROPROOF_INSTANTIATE(BFloat16)

}  // namespace zeroproof::reference
