// Products by the libraries against one loop after the other.
#include "reference/tensor/matmul.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "collectives/test_support.h"
#include "reference/tensor/roundoff.h"

namespace zeroproof::reference {
namespace {

// c is `rows` x `columns`, the common side of a and b is `inner`.
struct Shape {
    std::size_t rows, columns, inner;
};

std::vector<Product> all_products() {
    std::vector<Product> all;
    for (const bool a_transposed : {false, true})
        for (const bool b_transposed : {false, true})
            for (const bool accumulate : {false, true})
                all.push_back({a_transposed, b_transposed, accumulate});
    return all;
}

// Each side around the 256 of a tile, alone and together.
std::vector<Shape> shapes_around_a_tile() {
    std::vector<Shape> all;
    for (const std::size_t around : {255u, 256u, 257u})
        for (const Shape& shape : {Shape{around, 3, 17}, Shape{17, around, 1}, Shape{1, 17, around},
                                   Shape{around, around, 0}, Shape{3, around, around}})
            all.push_back(shape);
    all.push_back({257, 256, 255});
    all.push_back({3, 1, 300});
    return all;
}

// These, and every combination of small sizes.
std::vector<Shape> all_shapes() {
    std::vector<Shape> all = shapes_around_a_tile();
    for (const std::size_t rows : {0u, 1u, 3u, 17u})
        for (const std::size_t columns : {0u, 1u, 3u, 17u})
            for (const std::size_t inner : {0u, 1u, 3u, 17u}) all.push_back({rows, columns, inner});
    return all;
}

std::string describe(const Shape& shape, Product product) {
    return std::to_string(shape.rows) + " x " + std::to_string(shape.columns) + ", inner " +
           std::to_string(shape.inner) + (product.a_transposed ? ", a transposed" : "") +
           (product.b_transposed ? ", b transposed" : "") +
           (product.accumulate ? ", accumulated" : "");
}

// A matrix cut out of a larger one, all of whose elements start as NaN: one that is read by mistake
// shows in the sum, and one that is written by mistake is NaN no more.
template <typename T>
class Cut {
  public:
    Cut(std::size_t rows, std::size_t columns)
        : rows_(rows),
          columns_(columns),
          all_((rows + kAbove + kBelow) * stride(),
               narrow<T>(std::numeric_limits<Compute<T>>::quiet_NaN())) {}

    Matrix<T> matrix() {
        return Matrix<T>(all_.data(), rows_ + kAbove + kBelow, stride())
            .row_range(kAbove, rows_)
            .column_range(kLeft, columns_);
    }
    template <typename Make>
    void fill(Make&& make) {
        for (std::size_t i = 0; i < rows_; ++i)
            for (T& element : matrix().row(i)) element = narrow<T>(make());
    }
    std::size_t numbers_around() const {
        std::size_t numbers = 0;
        for (std::size_t i = 0; i < all_.size(); ++i) {
            const std::size_t row = i / stride();
            const std::size_t column = i % stride();
            const bool inside = row >= kAbove && row < kAbove + rows_ && column >= kLeft &&
                                column < kLeft + columns_;
            numbers += !inside && !std::isnan(widen(all_[i]));
        }
        return numbers;
    }

  private:
    static constexpr std::size_t kAbove = 1, kBelow = 2, kLeft = 3, kRight = 5;
    std::size_t stride() const { return columns_ + kLeft + kRight; }

    std::size_t rows_;
    std::size_t columns_;
    std::vector<T> all_;
};

// What a product takes: a and b as they lie in memory, and c before.
template <typename In, typename Out>
struct Operands {
    Cut<In> a;
    Cut<In> b;
    Cut<Out> c;

    Operands(const Shape& shape, Product product)
        : a(product.a_transposed ? shape.inner : shape.rows,
            product.a_transposed ? shape.rows : shape.inner),
          b(product.b_transposed ? shape.columns : shape.inner,
            product.b_transposed ? shape.inner : shape.columns),
          c(shape.rows, shape.columns) {
        set_threads_per_rank(1);
    }
    // Where nothing is accumulated c stays NaN: what it held must not be read.
    template <typename Make>
    void fill(Product product, Make&& make) {
        a.fill(make);
        b.fill(make);
        if (product.accumulate) c.fill(make);
    }
};

// All integers from -8 to 8.
class Integers {
  public:
    explicit Integers(std::uint32_t seed) : random_(seed) {}
    float operator()() { return static_cast<float>(random_() % 17) - 8; }

  private:
    std::mt19937 random_;
};

template <typename T>
void expect_equal(Matrix<T> actual, Matrix<T> expected, const std::string& what) {
    for (std::size_t i = 0; i < expected.rows; ++i)
        for (std::size_t j = 0; j < expected.columns; ++j)
            ASSERT_EQ(widen(actual.row(i)[j]), widen(expected.row(i)[j]))
                << what << ": row " << i << ", column " << j;
}

template <typename I, typename O>
struct Types {
    using In = I;
    using Out = O;
};

template <typename T>
class MatmulOfType : public testing::Test {};
using AllTypes =
    testing::Types<Types<float, float>, Types<double, double>, Types<Half, Half>,
                   Types<Half, float>, Types<BFloat16, BFloat16>, Types<BFloat16, float>>;
TYPED_TEST_SUITE(MatmulOfType, AllTypes);

// Catches a wrong transposition, leading dimension, tile edge or remainder, a tile that is added
// twice or left out, c that is read where nothing is accumulated, a sum that is rounded more than
// once, and any access beside the matrices.
//
// Products of integers of magnitude 8 over at most 300 are whole numbers below 2^15, which fp32 has
// in every order of summation: tolerance zero. A 16-bit c is then the one rounding of that number.
TYPED_TEST(MatmulOfType, SumsOfIntegersAreExact) {
    using In = typename TypeParam::In;
    using Out = typename TypeParam::Out;
    for (const Shape& shape : all_shapes())
        for (const Product& product : all_products()) {
            Operands<In, Out> of(shape, product);
            of.fill(product, Integers(1));
            Operands<In, Out> expected = of;
            matmul<In, Out>(of.a.matrix(), of.b.matrix(), of.c.matrix(), product);
            matmul_naive<In, Out>(of.a.matrix(), of.b.matrix(), expected.c.matrix(), product);
            expect_equal(of.c.matrix(), expected.c.matrix(), describe(shape, product));
            ASSERT_EQ(of.c.numbers_around(), 0u) << describe(shape, product);
            if (this->HasFatalFailure()) return;
        }
}

// The same shape again and again, cut out of matrices of other widths. Catches a product that was
// prepared for one distance between rows and is used for another.
TYPED_TEST(MatmulOfType, EachStrideIsItsOwn) {
    using In = typename TypeParam::In;
    using Out = typename TypeParam::Out;
    set_threads_per_rank(1);
    Integers integer(6);
    std::vector<In> a(100), b(100);
    for (std::vector<In>* each : {&a, &b})
        for (In& element : *each) element = narrow<In>(integer());
    for (const Product& product : all_products())
        for (const std::size_t a_stride : {4u, 9u})
            for (const std::size_t b_stride : {4u, 9u})
                for (const std::size_t c_stride : {4u, 9u}) {
                    const Matrix<const In> of_a(a.data(), 4, 4, a_stride);
                    const Matrix<const In> of_b(b.data(), 4, 4, b_stride);
                    std::vector<Out> c(100, narrow<Out>(3));
                    std::vector<Out> expected = c;
                    matmul<In, Out>(of_a, of_b, {c.data(), 4, 4, c_stride}, product);
                    matmul_naive<In, Out>(of_a, of_b, {expected.data(), 4, 4, c_stride}, product);
                    for (std::size_t i = 0; i < c.size(); ++i)
                        ASSERT_EQ(widen(c[i]), widen(expected[i]))
                            << describe({4, 4, 4}, product) << ", strides " << a_stride << ", "
                            << b_stride << ", " << c_stride << ": " << i;
                }
}

// Catches sums in less than the compute type, and partial sums that are rounded to the 16-bit type.
//
// A sum of K products in any order, fused or not, and what is added to it, err by less than (K + 2)
// u (sum |a| |b| + |c|), u = 2^-24 in fp32 (Higham, Accuracy and Stability of Numerical Algorithms,
// section 3.1; the second order is far below the 2 that is to spare). Rounding to the type adds its
// u once. The exact value is computed in fp64: for fp64 itself, whose two results both err, the
// bound is doubled.
TYPED_TEST(MatmulOfType, RandomSumsErrByNoMoreThanTheComputeTypeDoes) {
    using In = typename TypeParam::In;
    using Out = typename TypeParam::Out;
    constexpr double kOfSum = roundoff<Compute<Out>>() * (std::is_same_v<Out, double> ? 2 : 1);
    constexpr double kOfType = std::is_same_v<Out, Compute<Out>> ? 0 : roundoff<Out>();
    for (const Shape& shape : {Shape{17, 19, 300}, Shape{5, 257, 1000}, Shape{257, 3, 257}})
        for (const Product& product : all_products()) {
            std::mt19937 random(2);
            Operands<In, Out> of(shape, product);
            of.fill(product, [&] { return static_cast<float>(random()) * 0x1p-31f - 1; });
            Operands<double, double> exact(shape, product);
            Operands<double, double> sizes(shape, product);
            const auto widen_all = [&](auto from, Cut<double>& to, Cut<double>& size) {
                for (std::size_t i = 0; i < from.rows; ++i)
                    for (std::size_t j = 0; j < from.columns; ++j) {
                        to.matrix().row(i)[j] = double{widen(from.row(i)[j])};
                        size.matrix().row(i)[j] = std::abs(to.matrix().row(i)[j]);
                    }
            };
            widen_all(of.a.matrix(), exact.a, sizes.a);
            widen_all(of.b.matrix(), exact.b, sizes.b);
            widen_all(of.c.matrix(), exact.c, sizes.c);
            matmul<In, Out>(of.a.matrix(), of.b.matrix(), of.c.matrix(), product);
            for (auto* each : {&exact, &sizes})
                matmul_naive<double, double>(each->a.matrix(), each->b.matrix(), each->c.matrix(),
                                             product);
            for (std::size_t i = 0; i < shape.rows; ++i)
                for (std::size_t j = 0; j < shape.columns; ++j) {
                    const double value = exact.c.matrix().row(i)[j];
                    const double of_sum =
                        static_cast<double>(shape.inner + 2) * kOfSum * sizes.c.matrix().row(i)[j];
                    ASSERT_NEAR(double{widen(of.c.matrix().row(i)[j])}, value,
                                of_sum + kOfType * (std::abs(value) + of_sum))
                        << describe(shape, product) << ": row " << i << ", column " << j;
                }
        }
}

// What all others are compared with is itself compared with a product worked out by hand:
//   | 1 2 |             | 27  30  33 |
//   | 3 4 | | 7 8 9 | = | 61  68  75 |
//   | 5 6 | | 10 11 12| | 95 106 117 |
TYPED_TEST(MatmulOfType, ProductByHand) {
    using In = typename TypeParam::In;
    using Out = typename TypeParam::Out;
    const double a[3][2] = {{1, 2}, {3, 4}, {5, 6}};
    const double b[2][3] = {{7, 8, 9}, {10, 11, 12}};
    const double c[3][3] = {{27, 30, 33}, {61, 68, 75}, {95, 106, 117}};
    for (const auto multiply : {matmul<In, Out>, matmul_naive<In, Out>})
        for (const Product& product : all_products()) {
            Operands<In, Out> of({3, 3, 2}, product);
            of.fill(product, [] { return 4; });
            const auto put = [](Cut<In>& to, bool transposed, std::size_t i, std::size_t j,
                                double value) {
                to.matrix().row(transposed ? j : i)[transposed ? i : j] =
                    narrow<In>(static_cast<Compute<In>>(value));
            };
            for (std::size_t i = 0; i < 3; ++i)
                for (std::size_t j = 0; j < 2; ++j) {
                    put(of.a, product.a_transposed, i, j, a[i][j]);
                    put(of.b, product.b_transposed, j, i, b[j][i]);
                }
            multiply(of.a.matrix(), of.b.matrix(), of.c.matrix(), product);
            for (std::size_t i = 0; i < 3; ++i)
                for (std::size_t j = 0; j < 3; ++j)
                    EXPECT_EQ(widen(of.c.matrix().row(i)[j]),
                              c[i][j] + (product.accumulate ? 4 : 0))
                        << describe({3, 3, 2}, product) << ": " << i << ", " << j;
        }
}

// Catches a shape that is taken from one operand and not compared with the others: what would be
// read or written lies outside of them.
TYPED_TEST(MatmulOfType, ShapesThatDoNotFitAreRefused) {
    using In = typename TypeParam::In;
    using Out = typename TypeParam::Out;
    for (const auto multiply : {matmul<In, Out>, matmul_naive<In, Out>})
        for (const Product& product : all_products()) {
            Operands<In, Out> good({3, 5, 4}, product);
            good.fill(product, Integers(3));
            EXPECT_NO_THROW(multiply(good.a.matrix(), good.b.matrix(), good.c.matrix(), product));
            for (const Shape& shape : {Shape{4, 5, 4}, Shape{3, 4, 4}, Shape{3, 5, 3}}) {
                Operands<In, Out> bad(shape, product);
                const std::string what = describe(shape, product);
                // One operand of another shape at a time; not all are then wrong.
                const auto fits = [&](Matrix<In> a, Matrix<In> b, Matrix<Out> c) {
                    const auto same = [](const auto& x, const auto& y) {
                        return x.rows == y.rows && x.columns == y.columns;
                    };
                    if (same(a, good.a.matrix()) && same(b, good.b.matrix()) &&
                        same(c, good.c.matrix()))
                        return;
                    EXPECT_THROW(multiply(a, b, c, product), std::logic_error) << what;
                };
                fits(bad.a.matrix(), good.b.matrix(), good.c.matrix());
                fits(good.a.matrix(), bad.b.matrix(), good.c.matrix());
                fits(good.a.matrix(), good.b.matrix(), bad.c.matrix());
            }
        }
}

// Catches a 16-bit sum that saturates, or a NaN that a kernel drops: dynamic loss scaling finds an
// overflow by them alone.
TYPED_TEST(MatmulOfType, WhatIsNotFiniteStaysSo) {
    using In = typename TypeParam::In;
    using Out = typename TypeParam::Out;
    constexpr auto kInfinity = std::numeric_limits<Compute<In>>::infinity();
    for (const Product& product : all_products()) {
        Operands<In, Out> of({17, 19, 33}, product);
        of.fill(product, [] { return 1; });
        const auto a = of.a.matrix();
        const auto element = [&](std::size_t i, std::size_t k) -> In& {
            return product.a_transposed ? a.row(k)[i] : a.row(i)[k];
        };
        element(2, 20) = narrow<In>(kInfinity);
        element(5, 32) = narrow<In>(std::numeric_limits<Compute<In>>::quiet_NaN());
        if (std::is_same_v<Out, Half>)  // 33 * 4096 is beyond 65504
            for (std::size_t k = 0; k < 33; ++k) element(7, k) = narrow<In>(4096);
        matmul<In, Out>(a, of.b.matrix(), of.c.matrix(), product);
        for (std::size_t i = 0; i < 17; ++i)
            for (const Out& value : of.c.matrix().row(i)) {
                const auto v = widen(value);
                if (i == 2 || (i == 7 && std::is_same_v<Out, Half>))
                    EXPECT_EQ(v, kInfinity) << describe({17, 19, 33}, product) << " row " << i;
                else if (i == 5)
                    EXPECT_TRUE(std::isnan(v)) << describe({17, 19, 33}, product);
                else
                    EXPECT_EQ(v, product.accumulate ? 34 : 33)
                        << describe({17, 19, 33}, product) << " row " << i;
            }
    }
}

template <typename Out>
void expect_tiles_equal() {
    for (const Shape& shape : shapes_around_a_tile())
        for (const Product& product : all_products()) {
            Operands<BFloat16, Out> of(shape, product);
            of.fill(product, Integers(4));
            Operands<BFloat16, Out> by_tiles = of;
            matmul<BFloat16, Out>(of.a.matrix(), of.b.matrix(), of.c.matrix(), product);
            matmul_by_tiles<BFloat16, Out>(of.a.matrix(), of.b.matrix(), by_tiles.c.matrix(),
                                           product);
            expect_equal(by_tiles.c.matrix(), of.c.matrix(), describe(shape, product));
            ASSERT_EQ(by_tiles.c.numbers_around(), 0u) << describe(shape, product);
            if (testing::Test::HasFatalFailure()) return;
        }
}

// A processor without instructions for bf16 must come to the same sums: tolerance zero, as above.
TEST(MatmulByTiles, IsTheSameForBf16AsTheLibrary) {
    if (!has_bf16_products()) GTEST_SKIP() << "this processor has no products of bf16";
    expect_tiles_equal<BFloat16>();
    expect_tiles_equal<float>();
}

TEST(MatmulByTiles, ShapesThatDoNotFitAreRefused) {
    std::vector<BFloat16> elements(16);
    const Matrix<BFloat16> a(elements.data(), 2, 3);
    const Matrix<BFloat16> b(elements.data(), 2, 3);
    std::vector<float> sums(4);
    const Matrix<float> c(sums.data(), 2, 2);
    EXPECT_THROW((matmul_by_tiles<BFloat16, float>(a, b, c, {})), std::logic_error);
    EXPECT_NO_THROW((matmul_by_tiles<BFloat16, float>(a, b, c, {.b_transposed = true})));
}

template <typename In, typename Out>
void expect_exact_on_each_rank() {
    collectives::run_ranks(3, [](collectives::Communicator& world) {
        const auto rank = static_cast<std::size_t>(world.rank());
        for (std::size_t round = 0; round < 30; ++round)
            for (const Product& product : all_products()) {
                // Other shapes than the neighbour's, and often the same one again.
                const Shape shape{33 + (round + rank) % 4, 70, 40 + rank};
                Operands<In, Out> of(shape, product);
                of.fill(product, Integers(static_cast<std::uint32_t>(100 * rank + round)));
                Operands<In, Out> expected = of;
                matmul<In, Out>(of.a.matrix(), of.b.matrix(), of.c.matrix(), product);
                matmul_naive<In, Out>(of.a.matrix(), of.b.matrix(), expected.c.matrix(), product);
                expect_equal(of.c.matrix(), expected.c.matrix(), describe(shape, product));
            }
    });
}

// Ranks are threads. Catches a scratch buffer or a prepared primitive that two of them share.
TEST(Matmul, RanksMultiplyAtTheSameTime) {
    expect_exact_on_each_rank<float, float>();
    expect_exact_on_each_rank<Half, Half>();
    expect_exact_on_each_rank<BFloat16, BFloat16>();
    expect_exact_on_each_rank<BFloat16, float>();
}

// Catches a partition of the work that leaves a part out: exact, so that every split is the same.
TEST(Matmul, MoreThreadsForARankChangeNoSum) {
    for (const int threads : {2, 1}) {
        for (const Product& product : all_products()) {
            Operands<float, float> of({257, 256, 255}, product);
            set_threads_per_rank(threads);
            of.fill(product, Integers(5));
            Operands<float, float> expected = of;
            matmul<float, float>(of.a.matrix(), of.b.matrix(), of.c.matrix(), product);
            matmul_naive<float, float>(of.a.matrix(), of.b.matrix(), expected.c.matrix(), product);
            expect_equal(of.c.matrix(), expected.c.matrix(), describe({257, 256, 255}, product));
        }
    }
}

}  // namespace
}  // namespace zeroproof::reference
