#include "reference/tensor/matmul.h"

#include <cblas.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include "reference/tensor/onednn_matmul.h"

#if defined(__SANITIZE_THREAD__)
// The libraries synchronise by instructions that the sanitizer has not seen being compiled, and
// hand their memory from thread to thread. What this project does with their results is watched.
extern "C" const char* __tsan_default_suppressions() {
    return "race:libopenblas.so\n"
           "race:libdnnl.so\n"
           "race:libgomp.so\n";
}
#endif

namespace zeroproof::reference {

namespace {

// Of c, the common side of a and b.
template <typename In, typename Out>
std::size_t inner_size(const Matrix<const In>& a, const Matrix<const In>& b, const Matrix<Out>& c,
                       Product product) {
    const std::size_t a_rows = product.a_transposed ? a.columns : a.rows;
    const std::size_t a_columns = product.a_transposed ? a.rows : a.columns;
    const std::size_t b_rows = product.b_transposed ? b.columns : b.rows;
    const std::size_t b_columns = product.b_transposed ? b.rows : b.columns;
    if (a_columns != b_rows || a_rows != c.rows || b_columns != c.columns)
        throw std::logic_error(fmt::format("a product of {} x {} and {} x {} into {} x {}", a_rows,
                                           a_columns, b_rows, b_columns, c.rows, c.columns));
    return a_columns;
}

CBLAS_TRANSPOSE blas(bool transposed) {
    return transposed ? CblasTrans : CblasNoTrans;
}

// Leading dimensions must be positive, also of what is empty.
int leading(std::size_t stride) {
    return static_cast<int>(std::max<std::size_t>(1, stride));
}

void gemm(Matrix<const float> a, Matrix<const float> b, Matrix<float> c, std::size_t inner,
          Product product) {
    cblas_sgemm(CblasRowMajor, blas(product.a_transposed), blas(product.b_transposed),
                static_cast<int>(c.rows), static_cast<int>(c.columns), static_cast<int>(inner),
                1.0f, a.data, leading(a.stride), b.data, leading(b.stride),
                product.accumulate ? 1.0f : 0.0f, c.data, leading(c.stride));
}

void gemm(Matrix<const double> a, Matrix<const double> b, Matrix<double> c, std::size_t inner,
          Product product) {
    cblas_dgemm(CblasRowMajor, blas(product.a_transposed), blas(product.b_transposed),
                static_cast<int>(c.rows), static_cast<int>(c.columns), static_cast<int>(inner), 1.0,
                a.data, leading(a.stride), b.data, leading(b.stride),
                product.accumulate ? 1.0 : 0.0, c.data, leading(c.stride));
}

// Rows and columns of a tile: three of them in fp32 fit the second-level cache of a core.
constexpr std::size_t kTile = 256;
using Tile = std::array<float, kTile * kTile>;

// Elements [row, row + rows) x [column, column + columns) of the matrix, transposed or not.
template <typename In>
Matrix<const float> widened(const Matrix<const In>& matrix, bool transposed, std::size_t row,
                            std::size_t rows, std::size_t column, std::size_t columns, Tile& tile) {
    if (transposed) {
        std::swap(row, column);
        std::swap(rows, columns);
    }
    for (std::size_t i = 0; i < rows; ++i) {
        const In* from = matrix.data + (row + i) * matrix.stride + column;
        for (std::size_t j = 0; j < columns; ++j) tile[i * columns + j] = widen(from[j]);
    }
    return {tile.data(), rows, columns};
}

}  // namespace

template <typename In, typename Out>
void matmul_naive(Matrix<const In> a, Matrix<const In> b, Matrix<Out> c, Product product) {
    const std::size_t inner = inner_size(a, b, c, product);
    for (std::size_t i = 0; i < c.rows; ++i)
        for (std::size_t j = 0; j < c.columns; ++j) {
            Compute<Out> sum = 0;
            for (std::size_t k = 0; k < inner; ++k)
                sum += widen(product.a_transposed ? a.row(k)[i] : a.row(i)[k]) *
                       widen(product.b_transposed ? b.row(j)[k] : b.row(k)[j]);
            Out& element = c.row(i)[j];
            element = narrow<Out>(product.accumulate ? widen(element) + sum : sum);
        }
}

template <typename In, typename Out>
void matmul_by_tiles(Matrix<const In> a, Matrix<const In> b, Matrix<Out> c, Product product) {
    const std::size_t inner = inner_size(a, b, c, product);
    struct Tiles {
        Tile a, b, sums;
    };
    thread_local const auto tiles = std::make_unique<Tiles>();
    for (std::size_t row = 0; row < c.rows; row += kTile) {
        const std::size_t rows = std::min(kTile, c.rows - row);
        for (std::size_t column = 0; column < c.columns; column += kTile) {
            const std::size_t columns = std::min(kTile, c.columns - column);
            std::fill_n(tiles->sums.begin(), rows * columns, 0.0f);
            for (std::size_t k = 0; k < inner; k += kTile) {
                const std::size_t depth = std::min(kTile, inner - k);
                gemm(widened(a, product.a_transposed, row, rows, k, depth, tiles->a),
                     widened(b, product.b_transposed, k, depth, column, columns, tiles->b),
                     {tiles->sums.data(), rows, columns}, depth,
                     {product.a_transposed, product.b_transposed, true});
            }
            for (std::size_t i = 0; i < rows; ++i) {
                Out* to = c.data + (row + i) * c.stride + column;
                const float* sums = tiles->sums.data() + i * columns;
                for (std::size_t j = 0; j < columns; ++j)
                    to[j] = narrow<Out>(product.accumulate ? widen(to[j]) + sums[j] : sums[j]);
            }
        }
    }
}

template <typename In, typename Out>
void matmul(Matrix<const In> a, Matrix<const In> b, Matrix<Out> c, Product product) {
    const std::size_t inner = inner_size(a, b, c, product);
    if (c.rows == 0 || c.columns == 0) return;
    if constexpr (std::is_same_v<In, float> || std::is_same_v<In, double>) {
        gemm(a, b, c, inner, product);
    } else {
        if constexpr (std::is_same_v<In, BFloat16>)
            if (has_bf16_products() && inner > 0) return onednn_matmul(a, b, c, inner, product);
        matmul_by_tiles(a, b, c, product);
    }
}

void set_threads_per_rank(int threads) {
    openblas_set_num_threads(threads);
    set_onednn_threads(threads);
}

template void matmul(Matrix<const float>, Matrix<const float>, Matrix<float>, Product);
template void matmul(Matrix<const double>, Matrix<const double>, Matrix<double>, Product);
template void matmul(Matrix<const Half>, Matrix<const Half>, Matrix<Half>, Product);
template void matmul(Matrix<const Half>, Matrix<const Half>, Matrix<float>, Product);
template void matmul(Matrix<const BFloat16>, Matrix<const BFloat16>, Matrix<BFloat16>, Product);
template void matmul(Matrix<const BFloat16>, Matrix<const BFloat16>, Matrix<float>, Product);

template void matmul_naive(Matrix<const float>, Matrix<const float>, Matrix<float>, Product);
template void matmul_naive(Matrix<const double>, Matrix<const double>, Matrix<double>, Product);
template void matmul_naive(Matrix<const Half>, Matrix<const Half>, Matrix<Half>, Product);
template void matmul_naive(Matrix<const Half>, Matrix<const Half>, Matrix<float>, Product);
template void matmul_naive(Matrix<const BFloat16>, Matrix<const BFloat16>, Matrix<BFloat16>,
                           Product);
template void matmul_naive(Matrix<const BFloat16>, Matrix<const BFloat16>, Matrix<float>, Product);

template void matmul_by_tiles(Matrix<const BFloat16>, Matrix<const BFloat16>, Matrix<BFloat16>,
                              Product);
template void matmul_by_tiles(Matrix<const BFloat16>, Matrix<const BFloat16>, Matrix<float>,
                              Product);

}  // namespace zeroproof::reference
