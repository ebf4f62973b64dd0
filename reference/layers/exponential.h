// The exponential function in a form that compilers make vector instructions of.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace zeroproof::reference {

// e^x, within 2 units in the last place from -87 to 88, 0 below. The C library's function is exact
// to less, and called once for each element.
inline float exponential(float x) {
    // x = n ln 2 + r with |r| <= ln 2 / 2; ln 2 in two parts, so that n times the first is exact.
    const float bounded = x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x;
    constexpr float kRound = 0x1.8p23f;  // adding it leaves no digits behind the point
    const float n = (bounded * 0x1.715476p+0f + kRound) - kRound;
    const float r = bounded - n * 0x1.62e4p-1f - n * 0x1.7f7d1cp-20f;
    // The Taylor series to r^7.
    float e = 1.0f / 5040;
    e = e * r + 1.0f / 720;
    e = e * r + 1.0f / 120;
    e = e * r + 1.0f / 24;
    e = e * r + 1.0f / 6;
    e = e * r + 0.5f;
    e = e * r + 1.0f;
    e = e * r + 1.0f;
    const auto power = static_cast<std::uint32_t>(static_cast<std::int32_t>(n) + 127) << 23;
    return x < -87.0f ? 0.0f : e * std::bit_cast<float>(power);
}

inline double exponential(double x) {
    return std::exp(x);
}

}  // namespace zeroproof::reference
