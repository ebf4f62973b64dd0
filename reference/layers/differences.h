// What the gradients of a layer are compared with: differences of a loss in double precision.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "reference/tensor/roundoff.h"
#include "reference/tensor/scalar.h"

namespace zeroproof::reference {

// Numbers in [-size, size), the same on every machine.
inline std::vector<double> numbers(std::size_t count, std::uint32_t seed, double size = 1) {
    std::mt19937 random(seed);
    std::vector<double> all(count);
    for (double& value : all) value = size * (static_cast<double>(random()) * 0x1p-31 - 1);
    return all;
}

// Each rounded to the type, or widened from it.
template <typename T>
std::vector<T> rounded(std::span<const double> values) {
    std::vector<T> all;
    for (const double value : values) all.push_back(narrow<T>(static_cast<Compute<T>>(value)));
    return all;
}
template <typename T>
std::vector<double> widened(std::span<const T> values) {
    std::vector<double> all;
    for (const T value : values) all.push_back(double{widen(value)});
    return all;
}

// The sum of what a layer gives, each times a number of its own: a loss whose gradient by y is
// `factors`.
inline double weighted_sum(std::span<const double> y, std::span<const double> factors) {
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * factors[i];
    return sum;
}

// Compares the gradient by elements `first`, `first + step`, ... of x with
//   (8 (f(x + h) - f(x - h)) - (f(x + 2 h) - f(x - 2 h))) / (12 h),  h = 1e-3,
// which errs by h^4 / 30 times the fifth derivative, here of some hundreds at most: 1e-11; and by
// rounding, 1.5 / h times that of f, whose sums of some ten come to 1e-14 at most: 2e-11. The bound
// is several times that, and far below what any wrong term would change.
template <typename Loss>
void expect_gradient(const std::string& name, std::span<double> x, std::span<const double> gradient,
                     const Loss& loss, std::size_t first = 0, std::size_t step = 1) {
    constexpr double h = 1e-3;
    constexpr double kTolerance = 2e-10;
    ASSERT_EQ(x.size(), gradient.size()) << name;
    for (std::size_t i = first; i < x.size(); i += step) {
        const double before = x[i];
        const auto at = [&](double distance) {
            x[i] = before + distance;
            return loss();
        };
        const double near = at(h) - at(-h);
        const double far = at(2 * h) - at(-2 * h);
        x[i] = before;
        ASSERT_NEAR(gradient[i], (8 * near - far) / (12 * h),
                    kTolerance * (1 + std::abs(gradient[i])))
            << name << " element " << i;
    }
}

}  // namespace zeroproof::reference
