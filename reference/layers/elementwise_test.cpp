// Biases, dropout and residuals between two products.
#include "reference/layers/elementwise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "reference/layers/differences.h"

namespace zeroproof::reference {
namespace {

constexpr std::size_t kSamples = 2, kRowsOfSample = 3, kRows = kSamples * kRowsOfSample;

template <typename T>
class ElementwiseOfType : public testing::Test {};
using AllTypes = testing::Types<float, double, Half, BFloat16>;
TYPED_TEST_SUITE(ElementwiseOfType, AllTypes);

// Small integers: sums, and products with the 2 of a dropout of a half, are exact in each type.
template <typename T>
std::vector<T> integers(std::size_t count, int first) {
    std::vector<double> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(first + static_cast<double>(i % 7));
    return rounded<T>(values);
}

std::vector<Dropout> one_half() {
    std::vector<Dropout> of_samples;
    for (std::size_t sample = 0; sample < kSamples; ++sample)
        of_samples.push_back({0.5f, 3, 10 + sample, 2, DropoutSite::feed_forward});
    return of_samples;
}

// What dropout multiplies each element of all samples by, drawn for a whole sample at once.
std::vector<double> factors(std::span<const Dropout> dropout, std::size_t columns) {
    std::vector<double> all(kRows * columns, 1.0);
    for (std::size_t sample = 0; sample < dropout.size(); ++sample)
        dropout[sample].apply(
            0, std::span(all).subspan(sample * kRowsOfSample * columns, kRowsOfSample * columns));
    return all;
}

// Within one block of 256 columns, at its end, and beyond it.
constexpr std::size_t kColumns[] = {1, 5, 255, 256, 257, 600};

// Catches a bias or a residual that is left out, one that dropout is applied to by mistake, and
// dropout that counts rows or columns from elsewhere than the begin of the sample.
TYPED_TEST(ElementwiseOfType, BiasDropoutAndResidualJoin) {
    using T = TypeParam;
    for (const std::size_t columns : kColumns)
        for (const bool with_bias : {false, true})
            for (const bool with_residual : {false, true})
                for (const bool with_dropout : {false, true}) {
                    const std::vector<T> before = integers<T>(kRows * columns, -3);
                    const std::vector<T> bias = integers<T>(with_bias ? columns : 0, 1);
                    const std::vector<T> residual = integers<T>(kRows * columns, 5);
                    const std::vector<Dropout> dropout =
                        with_dropout ? one_half() : std::vector<Dropout>();
                    const std::vector<double> factor = factors(dropout, columns);
                    std::vector<T> y = before;
                    bias_dropout_residual<T>(bias, dropout, kRowsOfSample,
                                             with_residual
                                                 ? Matrix<const T>(residual.data(), kRows, columns)
                                                 : Matrix<const T>(),
                                             {y.data(), kRows, columns});
                    for (std::size_t i = 0; i < y.size(); ++i) {
                        double expected = double{widen(before[i])};
                        if (with_bias) expected += double{widen(bias[i % columns])};
                        expected *= factor[i];
                        if (with_residual) expected += double{widen(residual[i])};
                        ASSERT_EQ(double{widen(y[i])}, expected) << columns << " columns, " << i;
                    }
                }
}

// The gradient goes through the same mask. In place, too.
TYPED_TEST(ElementwiseOfType, BackwardDropsWhatForwardDid) {
    using T = TypeParam;
    for (const std::size_t columns : kColumns) {
        const std::vector<T> gradient = integers<T>(kRows * columns, 1);
        const std::vector<double> factor = factors(one_half(), columns);
        std::vector<T> y(gradient.size());
        dropout_backward<T>(one_half(), kRowsOfSample, {gradient.data(), kRows, columns},
                            {y.data(), kRows, columns});
        for (std::size_t i = 0; i < y.size(); ++i)
            ASSERT_EQ(double{widen(y[i])}, double{widen(gradient[i])} * factor[i]) << i;
        std::vector<T> in_place = gradient;
        dropout_backward<T>(one_half(), kRowsOfSample, {in_place.data(), kRows, columns},
                            {in_place.data(), kRows, columns});
        EXPECT_EQ(widened<T>(in_place), widened<T>(y));
        std::vector<T> copied(gradient.size());
        dropout_backward<T>({}, kRowsOfSample, {gradient.data(), kRows, columns},
                            {copied.data(), kRows, columns});
        EXPECT_EQ(widened<T>(copied), widened<T>(gradient));
    }
}

TYPED_TEST(ElementwiseOfType, BiasIsAddedToEachRow) {
    using T = TypeParam;
    const std::vector<T> before = integers<T>(kRows * 5, -3);
    const std::vector<T> bias = integers<T>(5, 10);
    std::vector<T> y = before;
    add_bias<T>({}, {y.data(), kRows, 5});
    EXPECT_EQ(widened<T>(y), widened<T>(before));
    add_bias<T>(bias, {y.data(), kRows, 5});
    for (std::size_t i = 0; i < y.size(); ++i)
        EXPECT_EQ(widen(y[i]), widen(before[i]) + widen(bias[i % 5]));
}

// 2400 ones, added to 16. Catches a sum that is rounded at each row: in bf16 it would stay at 256,
// in fp16 at 2048; and one that forgets what is there.
TYPED_TEST(ElementwiseOfType, GradientOfABiasIsTheSumOfAllRowsRoundedOnce) {
    using T = TypeParam;
    const std::vector<T> gradient(2400 * 3, narrow<T>(1));
    std::vector<T> bias(3, narrow<T>(16));
    memory::Space space("device");
    bias_backward<T>({gradient.data(), 2400, 3}, bias, space);
    for (const T& element : bias) EXPECT_EQ(widen(element), 2416);
    EXPECT_EQ(space.ledger().peak_bytes(memory::Category::activation), 3 * sizeof(Compute<T>));
    EXPECT_EQ(space.ledger().live_bytes(), 0u);
    bias_backward<T>({gradient.data(), 2400, 3}, {}, space);  // there is none: nothing happens
    EXPECT_EQ(space.ledger().peak_bytes(), 3 * sizeof(Compute<T>));
}

// Of the whole sublayer at once, its output and the residual by differences.
TEST(Elementwise, GradientsAreTheDifferences) {
    const std::size_t columns = 4;
    std::vector<double> x = numbers(kRows * columns, 1);
    std::vector<double> bias = numbers(columns, 2);
    std::vector<double> residual = numbers(x.size(), 3);
    const std::vector<double> dy = numbers(x.size(), 4);
    std::vector<double> of_x(x.size());
    std::vector<double> of_bias(columns);
    memory::Space space("device");
    dropout_backward<double>(one_half(), kRowsOfSample, {dy.data(), kRows, columns},
                             {of_x.data(), kRows, columns});
    bias_backward<double>({of_x.data(), kRows, columns}, of_bias, space);
    const auto loss = [&] {
        std::vector<double> y = x;
        bias_dropout_residual<double>(bias, one_half(), kRowsOfSample,
                                      {residual.data(), kRows, columns},
                                      {y.data(), kRows, columns});
        return weighted_sum(y, dy);
    };
    expect_gradient("x", x, of_x, loss);
    expect_gradient("bias", bias, of_bias, loss);
    expect_gradient("residual", residual, dy, loss);
}

}  // namespace
}  // namespace zeroproof::reference
