// The loss and its gradients against their formulas and against differences.
#include "reference/layers/cross_entropy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <vector>

#include "reference/layers/differences.h"
#include "reference/tensor/matmul.h"

namespace zeroproof::reference {
namespace {

constexpr std::size_t kColumns = 5, kVocabulary = 7;

// What goes in and comes out, in one type.
template <typename T>
struct Loss {
    std::size_t rows;
    std::vector<T> x, weight, dx, dweight;
    std::vector<std::int32_t> targets;
    memory::Space space{"device"};

    explicit Loss(std::size_t row_count)
        : rows(row_count),
          x(rounded<T>(numbers(rows * kColumns, 1, 2))),
          weight(rounded<T>(numbers(kVocabulary * kColumns, 2))),
          dx(x.size(), narrow<T>(99)),  // to be overwritten
          dweight(rounded<T>(numbers(weight.size(), 3))) {
        set_threads_per_rank(1);
        for (std::size_t i = 0; i < rows; ++i)
            targets.push_back(static_cast<std::int32_t>(i * i % kVocabulary));
    }
    double forward() {
        return cross_entropy<T>({x.data(), rows, kColumns}, {weight.data(), kVocabulary, kColumns},
                                targets, space);
    }
    void backward(Compute<T> scale) {
        cross_entropy_backward<T>(
            {x.data(), rows, kColumns}, {weight.data(), kVocabulary, kColumns}, targets, scale,
            {dx.data(), rows, kColumns}, {dweight.data(), kVocabulary, kColumns}, space);
    }
};

// -log softmax of one row, by the definition.
template <typename T>
double expected(const Loss<T>& of) {
    double loss = 0;
    for (std::size_t i = 0; i < of.rows; ++i) {
        double sum = 0;
        double of_target = 0;
        for (std::size_t v = 0; v < kVocabulary; ++v) {
            double logit = 0;
            for (std::size_t c = 0; c < kColumns; ++c)
                logit += double{widen(of.x[i * kColumns + c])} *
                         double{widen(of.weight[v * kColumns + c])};
            sum += std::exp(logit);
            if (of.targets[i] == static_cast<std::int32_t>(v)) of_target = logit;
        }
        loss += std::log(sum) - of_target;
    }
    return loss / static_cast<double>(of.rows);
}

// One row, few, and around one tile and two.
const std::size_t kRowCounts[] = {
    1, 3, kLogitTile - 1, kLogitTile, kLogitTile + 1, 2 * kLogitTile + 1};

// Catches a mean over the rows of a tile, a tile that is left out, and a target of another row.
TEST(CrossEntropy, ForwardIsTheFormula) {
    for (const std::size_t rows : kRowCounts) {
        Loss<double> loss(rows);
        EXPECT_NEAR(loss.forward(), expected(loss), 1e-13) << rows;
    }
}

// Catches a gradient of the weight that is of the last tile alone or not added to what is there,
// one of x that is, and a scale that one of the two does not get.
TEST(CrossEntropy, GradientsAreTheDifferences) {
    for (const std::size_t rows : kRowCounts)
        for (const double scale : {1.0, 64.0}) {
            Loss<double> loss(rows);
            std::vector<double> of_weight = loss.dweight;
            loss.backward(scale);
            for (std::size_t i = 0; i < of_weight.size(); ++i)
                of_weight[i] = (loss.dweight[i] - of_weight[i]) / scale;
            for (double& gradient : loss.dx) gradient /= scale;
            const auto value = [&] { return loss.forward(); };
            expect_gradient("weight", loss.weight, of_weight, value);
            // All of a few rows, of many each 17th element and the last row.
            expect_gradient("x", loss.x, loss.dx, value, 0, rows < 10 ? 1 : 17);
            expect_gradient("x", loss.x, loss.dx, value, loss.x.size() - kColumns);
        }
}

// What a row gives does not depend on the tile that it is in: alone it is the same, within the
// order of its sums.
TEST(CrossEntropy, RowsAreIndependent) {
    Loss<double> all(kLogitTile + 3);
    all.backward(static_cast<double>(all.rows));
    for (const std::size_t row : {std::size_t{0}, kLogitTile - 1, kLogitTile, kLogitTile + 2}) {
        Loss<double> one(1);
        std::copy_n(all.x.begin() + static_cast<std::ptrdiff_t>(row * kColumns), kColumns,
                    one.x.begin());
        one.targets = {all.targets[row]};
        one.backward(1);
        for (std::size_t c = 0; c < kColumns; ++c)
            EXPECT_NEAR(one.dx[c], all.dx[row * kColumns + c], 1e-14) << row;
    }
}

template <typename T>
void expect_near_double() {
    // Of fp32 all is in kOfFp32.
    constexpr double u = std::is_same_v<T, float> ? 0 : roundoff<T>();
    constexpr double kOfFp32 = 60 * 0x1p-24;
    const std::size_t rows = kLogitTile + 9;
    const auto scale = static_cast<float>(rows);  // so that nothing is below fp16's range
    Loss<T> low(rows);
    Loss<double> exact(rows);
    exact.x = widened<T>(low.x);
    exact.weight = widened<T>(low.weight);
    exact.dweight = widened<T>(low.dweight);
    EXPECT_NEAR(low.forward(), exact.forward(), 10 * kOfFp32);
    low.backward(scale);
    exact.backward(scale);
    for (std::size_t i = 0; i < low.dx.size(); ++i)
        ASSERT_NEAR(double{widen(low.dx[i])}, exact.dx[i],
                    u * (2 + std::abs(exact.dx[i])) + 2 * kOfFp32)
            << "x " << i;
    // |x| < 2; the sizes of a logit's gradients over all rows.
    const double sizes = static_cast<double>(rows) * 2;
    for (std::size_t i = 0; i < low.dweight.size(); ++i)
        ASSERT_NEAR(double{widen(low.dweight[i])}, exact.dweight[i],
                    u * (sizes + std::abs(exact.dweight[i])) + kOfFp32 * sizes)
            << "weight " << i;
}

// Catches logits, sums over a tile or the sum of all tiles that are rounded to 16 bits.
//
// The gradient of a logit, at most 1 in size and 2 for all of a row, is rounded to the type before
// it is multiplied, and the result once. A logit is a sum of 5 products below 2: 50 u of fp32, and
// probabilities by as much; the loss by 10 times 50 u at most.
TEST(CrossEntropy, LowPrecisionIsRoundedWhereItIsMultiplied) {
    expect_near_double<float>();
    expect_near_double<Half>();
    expect_near_double<BFloat16>();
}

// Logits of thousands: catches an exponential of a logit itself. The loss is then their difference,
// or nothing, and the gradient, of a probability 1 and others 0, too.
template <typename T>
void expect_stable() {
    Loss<T> loss(2);
    loss.targets = {3, 0};
    for (std::size_t c = 0; c < kColumns; ++c) {
        for (std::size_t i = 0; i < 2; ++i) loss.x[i * kColumns + c] = narrow<T>(100);
        for (std::size_t v = 0; v < kVocabulary; ++v)
            loss.weight[v * kColumns + c] = narrow<T>(v == 3 ? 16.0f : -16.0f);
    }
    std::ranges::fill(loss.dweight, narrow<T>(0));
    // 5 * 100 * 32 in one of two rows.
    EXPECT_EQ(loss.forward(), 16000.0 / 2);
    loss.backward(2);
    for (std::size_t c = 0; c < kColumns; ++c) {
        EXPECT_EQ(widen(loss.dx[c]), 0);
        EXPECT_EQ(widen(loss.dx[kColumns + c]), 32);
        for (std::size_t v = 0; v < kVocabulary; ++v)
            EXPECT_EQ(widen(loss.dweight[v * kColumns + c]), v == 3 ? 100 : v == 0 ? -100 : 0);
    }
}
TEST(CrossEntropy, LargeLogitsAreStable) {
    expect_stable<float>();
    expect_stable<double>();
    expect_stable<Half>();
    expect_stable<BFloat16>();
}

TEST(CrossEntropy, TargetsBeyondTheVocabularyAreRefused) {
    for (const std::int32_t target : {-1, static_cast<std::int32_t>(kVocabulary), 1 << 30}) {
        Loss<float> loss(3);
        loss.targets[1] = target;
        EXPECT_THROW((void)loss.forward(), std::out_of_range) << target;
        EXPECT_THROW(loss.backward(1), std::out_of_range) << target;
        EXPECT_EQ(loss.space.ledger().live_bytes(), 0u);
    }
}

// The bytes that the planner counts. Catches logits of all tokens at once, and what is left.
TEST(CrossEntropy, ATileOfLogitsIsLive) {
    for (const std::size_t rows : kRowCounts) {
        const std::size_t tile = std::min(rows, kLogitTile) * kVocabulary;
        const auto expect_peaks = [&](auto loss, std::size_t forward, std::size_t backward) {
            (void)loss->forward();
            EXPECT_EQ(loss->space.ledger().peak_bytes(memory::Category::activation), forward);
            loss->backward(1);
            EXPECT_EQ(loss->space.ledger().peak_bytes(memory::Category::activation), backward);
            EXPECT_EQ(loss->space.ledger().peak_bytes(), backward);
            EXPECT_EQ(loss->space.ledger().live_bytes(), 0u);
        };
        expect_peaks(std::make_unique<Loss<float>>(rows), 4 * tile, 4 * tile);
        // Beside the tile that as which it is multiplied, and the sum over tiles.
        expect_peaks(std::make_unique<Loss<Half>>(rows), 4 * tile,
                     (4 + 2) * tile + 4 * kVocabulary * kColumns);
    }
}

}  // namespace
}  // namespace zeroproof::reference
