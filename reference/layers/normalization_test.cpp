// LayerNorm and RMSNorm against their formulas in double precision, and their gradients against
// differences.
#include "reference/layers/normalization.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "reference/layers/differences.h"

namespace zeroproof::reference {
namespace {

constexpr double kEpsilon = 1e-5;

// What goes in, and what is to come out, in one type.
template <typename T>
struct Norm {
    Normalization kind;
    std::size_t rows, columns;
    std::vector<T> x, weight, bias, y, dy;
    std::vector<T> dx, dweight, dbias;  // as they start; backward adds to them
    std::vector<Compute<T>> statistics;
    memory::Space space{"device"};

    Norm(Normalization of, std::size_t row_count, std::size_t column_count)
        : kind(of),
          rows(row_count),
          columns(column_count),
          x(some(rows * columns, 1)),
          weight(some(columns, 2)),
          bias(some(is_layer() ? columns : 0, 3)),
          y(rows * columns),
          dy(some(rows * columns, 4)),
          dx(some(rows * columns, 5)),
          dweight(some(columns, 6)),
          dbias(some(bias.size(), 7)),
          statistics(2 * rows) {}

    bool is_layer() const { return kind == Normalization::layer; }
    static std::vector<T> some(std::size_t count, std::uint32_t seed) {
        return rounded<T>(numbers(count, seed));
    }
    void forward() {
        normalize<T>(kind, {x.data(), rows, columns}, weight, bias,
                     static_cast<Compute<T>>(kEpsilon), {y.data(), rows, columns},
                     {statistics.data(), rows, 2});
    }
    void backward() {
        normalize_backward<T>(kind, {x.data(), rows, columns}, weight, {statistics.data(), rows, 2},
                              {dy.data(), rows, columns}, {dx.data(), rows, columns}, dweight,
                              dbias, space);
    }
};

class NormOfKind : public testing::TestWithParam<Normalization> {};
INSTANTIATE_TEST_SUITE_P(Normalization, NormOfKind,
                         testing::Values(Normalization::layer, Normalization::rms),
                         [](const auto& kind) {
                             return kind.param == Normalization::layer ? "layer" : "rms";
                         });

// What the two papers write, one element at a time.
template <typename T>
double expected(const Norm<T>& norm, std::size_t row, std::size_t column) {
    const auto at = [&](std::size_t j) { return double{widen(norm.x[row * norm.columns + j])}; };
    const auto count = static_cast<double>(norm.columns);
    double mean = 0;
    for (std::size_t j = 0; j < norm.columns; ++j) mean += at(j) / count;
    if (!norm.is_layer()) mean = 0;
    double variance = 0;
    for (std::size_t j = 0; j < norm.columns; ++j)
        variance += (at(j) - mean) * (at(j) - mean) / count;
    const double bias = norm.is_layer() ? double{widen(norm.bias[column])} : 0;
    return (at(column) - mean) / std::sqrt(variance + kEpsilon) *
               double{widen(norm.weight[column])} +
           bias;
}

// Catches a mean that RMSNorm has not, a variance over columns - 1, an epsilon outside of the root,
// and a row that is taken for another's. Some tens of operations of 1e-16 each.
TEST_P(NormOfKind, ForwardIsTheFormula) {
    for (const auto& [rows, columns] : {std::pair{1u, 1u}, {3u, 2u}, {5u, 17u}, {2u, 300u}}) {
        Norm<double> norm(GetParam(), rows, columns);
        norm.forward();
        for (std::size_t i = 0; i < rows; ++i)
            for (std::size_t j = 0; j < columns; ++j)
                EXPECT_NEAR(norm.y[i * columns + j], expected(norm, i, j), 1e-13) << i << " " << j;
    }
}

// Catches a term that is left out of the gradient (of the mean, of the deviation), one that only
// LayerNorm has and RMSNorm is given too, and sums that start from something else than what is
// there.
TEST_P(NormOfKind, GradientsAreTheDifferences) {
    for (const auto& [rows, columns] : {std::pair{1u, 2u}, {4u, 3u}, {3u, 19u}}) {
        Norm<double> norm(GetParam(), rows, columns);
        const auto [dx, dweight, dbias] = std::tuple(norm.dx, norm.dweight, norm.dbias);
        norm.forward();
        norm.backward();
        const auto added = [](std::vector<double> sum, const std::vector<double>& before) {
            for (std::size_t i = 0; i < sum.size(); ++i) sum[i] -= before[i];
            return sum;
        };
        const auto loss = [&] {
            norm.forward();
            return weighted_sum(norm.y, norm.dy);
        };
        expect_gradient("x", norm.x, added(norm.dx, dx), loss);
        expect_gradient("weight", norm.weight, added(norm.dweight, dweight), loss);
        expect_gradient("bias", norm.bias, added(norm.dbias, dbias), loss);
    }
}

// A row of a constant has no deviation but epsilon's. Catches a division by it, and a square root
// of what rounding has made negative.
TEST_P(NormOfKind, AConstantRowIsFinite) {
    for (const float value : {0.0f, 3.0f, -1000.0f}) {
        Norm<float> norm(GetParam(), 1, 7);
        std::ranges::fill(norm.x, value);
        norm.forward();
        norm.backward();
        for (std::size_t j = 0; j < 7; ++j) {
            EXPECT_NEAR(norm.y[j], expected(norm, 0, j), 1e-6 * std::abs(norm.y[j]));
            EXPECT_TRUE(std::isfinite(norm.dx[j]));
        }
    }
}

template <typename T>
void expect_near_double(Normalization kind) {
    constexpr double u = roundoff<T>();
    constexpr double kOfSums = 40 * 0x1p-24;  // see below
    const std::size_t rows = 9, columns = 33;
    Norm<T> low(kind, rows, columns);
    Norm<double> exact(kind, rows, columns);
    for (const auto& [to, from] : {std::pair{&exact.x, &low.x},
                                   {&exact.weight, &low.weight},
                                   {&exact.bias, &low.bias},
                                   {&exact.dy, &low.dy},
                                   {&exact.dx, &low.dx},
                                   {&exact.dweight, &low.dweight},
                                   {&exact.dbias, &low.dbias}})
        *to = widened<T>(*from);
    low.forward();
    low.backward();
    exact.forward();
    exact.backward();
    const auto near = [&](const char* name, const std::vector<T>& actual,
                          const std::vector<double>& expected_values, double size) {
        for (std::size_t i = 0; i < actual.size(); ++i)
            EXPECT_NEAR(double{widen(actual[i])}, expected_values[i],
                        u * std::abs(expected_values[i]) + kOfSums * size)
                << name << " " << i;
    };
    near("y", low.y, exact.y, 4);
    near("x", low.dx, exact.dx, 16);
    near("weight", low.dweight, exact.dweight, 4 * rows);
    near("bias", low.dbias, exact.dbias, rows);
}

// Catches sums and statistics that are rounded to 16 bits on their way.
//
// Each result is computed in fp32 and rounded once: u of the result. Before that a sum over 33
// columns or 9 rows errs by less than 33 u of fp32 of the sum of sizes, and some 7 operations more
// by u each, 40 in all. Sizes: |x|, |weight| and |dy| are below 1, and the deviation of a row, of
// uniform numbers, about 1 / sqrt 3, so that a normalized element is below 3 and y below 4; a term
// of dx is below scale * 3 * 3 < 16; one of the weight's sum below 4, of the bias's below 1.
TEST_P(NormOfKind, LowPrecisionIsRoundedOnce) {
    expect_near_double<float>(GetParam());
    expect_near_double<Half>(GetParam());
    expect_near_double<BFloat16>(GetParam());
}

// What the planner counts: two rows in fp32 while backward runs, and nothing is left.
TEST_P(NormOfKind, BackwardTakesTwoRows) {
    Norm<BFloat16> norm(GetParam(), 5, 37);
    norm.forward();
    EXPECT_EQ(norm.space.ledger().peak_bytes(), 0u);
    norm.backward();
    EXPECT_EQ(norm.space.ledger().peak_bytes(memory::Category::activation), 2 * 37 * sizeof(float));
    EXPECT_EQ(norm.space.ledger().peak_bytes(), 2 * 37 * sizeof(float));
    EXPECT_EQ(norm.space.ledger().live_bytes(), 0u);
}

}  // namespace
}  // namespace zeroproof::reference
