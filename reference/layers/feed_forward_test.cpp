// The two nonlinearities against their formulas, and their gradients against differences.
#include "reference/layers/feed_forward.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "reference/layers/differences.h"

namespace zeroproof::reference {
namespace {

class Activating : public testing::TestWithParam<Nonlinearity> {
  protected:
    std::size_t in() const { return columns_in(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(FeedForward, Activating,
                         testing::Values(Nonlinearity::gelu, Nonlinearity::swiglu),
                         [](const auto& kind) {
                             return kind.param == Nonlinearity::gelu ? "gelu" : "swiglu";
                         });

double gelu(double x) {
    return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}
double silu(double x) {
    return x / (1 + std::exp(-x));
}

// Catches a constant that is mistyped, a cubic term that is left out, and halves that change
// places. Some ten operations of 2^-53.
TEST_P(Activating, ForwardIsTheFormula) {
    for (const std::size_t rows : {1u, 3u})
        for (const std::size_t columns : {1u, 5u, 64u}) {
            const std::vector<double> x = numbers(rows * in() * columns, 1, 6);
            std::vector<double> y(rows * columns);
            activate<double>(GetParam(), {x.data(), rows, in() * columns},
                             {y.data(), rows, columns});
            for (std::size_t i = 0; i < rows; ++i)
                for (std::size_t j = 0; j < columns; ++j) {
                    const double* row = x.data() + i * in() * columns;
                    const double expected = GetParam() == Nonlinearity::gelu
                                                ? gelu(row[j])
                                                : silu(row[j]) * row[columns + j];
                    EXPECT_NEAR(y[i * columns + j], expected, 1e-14) << i << " " << j;
                }
        }
}

TEST_P(Activating, GradientsAreTheDifferences) {
    for (const std::size_t rows : {1u, 4u})
        for (const std::size_t columns : {1u, 7u}) {
            std::vector<double> x = numbers(rows * in() * columns, 2, 4);
            std::vector<double> y(rows * columns);
            const std::vector<double> dy = numbers(y.size(), 3);
            std::vector<double> gradient = x;
            activate_backward<double>(GetParam(), {gradient.data(), rows, in() * columns},
                                      {dy.data(), rows, columns});
            expect_gradient("x", x, gradient, [&] {
                activate<double>(GetParam(), {x.data(), rows, in() * columns},
                                 {y.data(), rows, columns});
                return weighted_sum(y, dy);
            });
        }
}

template <typename T>
void expect_near_double(Nonlinearity kind) {
    const std::size_t rows = 50, columns = 40, in = columns_in(kind) * columns;
    const std::vector<T> x = rounded<T>(numbers(rows * in, 4, 5));
    const std::vector<T> dy = rounded<T>(numbers(rows * columns, 5));
    std::vector<T> y(dy.size());
    std::vector<T> dx = x;
    activate<T>(kind, {x.data(), rows, in}, {y.data(), rows, columns});
    activate_backward<T>(kind, {dx.data(), rows, in}, {dy.data(), rows, columns});
    const std::vector<double> wide_x = widened<T>(x);
    const std::vector<double> wide_dy = widened<T>(dy);
    std::vector<double> expected_y(y.size());
    std::vector<double> expected_dx = wide_x;
    activate<double>(kind, {wide_x.data(), rows, in}, {expected_y.data(), rows, columns});
    activate_backward<double>(kind, {expected_dx.data(), rows, in},
                              {wide_dy.data(), rows, columns});
    constexpr double u = roundoff<T>();
    const double of_fp32 = 300 * 0x1p-24 * (kind == Nonlinearity::gelu ? 1 : 5);
    constexpr double kSubnormal = std::is_same_v<T, Half> ? 0x1p-25 : 0;
    for (std::size_t i = 0; i < y.size(); ++i)
        EXPECT_NEAR(double{widen(y[i])}, expected_y[i],
                    u * std::abs(expected_y[i]) + of_fp32 + kSubnormal)
            << "y of " << wide_x[i];
    for (std::size_t i = 0; i < dx.size(); ++i)
        EXPECT_NEAR(double{widen(dx[i])}, expected_dx[i],
                    u * std::abs(expected_dx[i]) + of_fp32 + kSubnormal)
            << "gradient by " << wide_x[i];
}

// Catches an intermediate value that is rounded to 16 bits.
//
// Each result is computed in fp32 and rounded once: u of it, or half of the least subnormal number
// of fp16. Before that the argument of the exponential, which is below 17 for |x| <= 5, errs by
// some 6 u of fp32 of itself, so that the exponential errs by 100 u of itself and sigmoid, whose
// slope is at most 1/4, by 27 u; x sigmoid by 140 u; the slope of it, s + x s (1 - s) times at most
// 7, by 300 u. SwiGLU multiplies both by another input, of at most 5.
TEST_P(Activating, LowPrecisionIsRoundedOnce) {
    expect_near_double<float>(GetParam());
    expect_near_double<Half>(GetParam());
    expect_near_double<BFloat16>(GetParam());
}

// Far out the nonlinearity is 0 or x, its slope 0 or 1. Catches e^x that overflows to a NaN by
// infinity over infinity or zero times infinity.
TEST_P(Activating, LargeInputsAreFinite) {
    for (const float size : {20.0f, 100.0f, 1000.0f, 60000.0f}) {
        std::vector<float> x{size, -size};
        x.resize(2 * in(), 1.0f);
        std::vector<float> y(2);
        activate<float>(GetParam(), {x.data(), 1, 2 * in()}, {y.data(), 1, 2});
        EXPECT_NEAR(y[0], size, 1e-6 * size) << size;
        EXPECT_NEAR(y[1], 0, 1e-6) << size;
        const std::vector<float> dy{1, 1};
        activate_backward<float>(GetParam(), {x.data(), 1, 2 * in()}, {dy.data(), 1, 2});
        EXPECT_NEAR(x[0], 1, 1e-6) << size;
        EXPECT_NEAR(x[1], 0, 1e-6) << size;
    }
}

}  // namespace
}  // namespace zeroproof::reference
