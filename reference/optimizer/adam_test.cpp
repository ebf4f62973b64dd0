// Adam, against numbers worked out by hand and a plain loop in double precision.
#include "reference/optimizer/adam.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace zeroproof::reference {
namespace {

struct States {
    std::vector<float> p, m, v;
};

States step(const ParameterGroup& group, int t, GradientScaling scaling, std::vector<float> g,
            States s) {
    adam_step(group, t, scaling,
              {DType::fp32, reinterpret_cast<const std::byte*>(g.data()), g.size()}, s.p, s.m, s.v);
    return s;
}

constexpr ParameterGroup kExact{
    .learning_rate = 0.5f, .beta1 = 0.5f, .beta2 = 0.75f, .epsilon = 1.0f};

// t = 1: m = 2, v = 4, m_hat = 4, v_hat = 16, p = 10 - 0.5 * 4 / (4 + 1).
// t = 2, g = 0: m = 1, v = 3, m_hat = 1 / 0.75, v_hat = 3 / 0.4375.
TEST(Adam, TwoStepsByHand) {
    States s = step(kExact, 1, {}, {4}, {{10}, {0}, {0}});
    EXPECT_EQ(s.m[0], 2);
    EXPECT_EQ(s.v[0], 4);
    EXPECT_FLOAT_EQ(s.p[0], 9.6f);
    s = step(kExact, 2, {}, {0}, s);
    EXPECT_EQ(s.m[0], 1);
    EXPECT_EQ(s.v[0], 3);
    EXPECT_FLOAT_EQ(s.p[0], 9.6f - 0.5f * (1 / 0.75f) / (std::sqrt(3 / 0.4375f) + 1));
}

// FC24: one form of decay for the other. L2 enters the moments, decoupled does not.
TEST(Adam, DecayByHand) {
    ParameterGroup group = kExact;
    group.weight_decay = 0.25f;
    const States decoupled = step(group, 1, {}, {4}, {{8}, {0}, {0}});
    EXPECT_EQ(decoupled.m[0], 2);
    EXPECT_FLOAT_EQ(decoupled.p[0], 8 - 0.5f * (4.0f / 5 + 0.25f * 8));
    group.decay = Decay::l2;
    const States l2 = step(group, 1, {}, {4}, {{8}, {0}, {0}});
    EXPECT_EQ(l2.m[0], 3);  // of 4 + 0.25 * 8
    EXPECT_FLOAT_EQ(l2.p[0], 8 - 0.5f * 6 / 7);
}

// FC18: unscaling and clipping come before the moments.
TEST(Adam, SeesTheUnscaledClippedGradient) {
    const States scaled =
        step(kExact, 1, {.divisor = 512, .clip = 0.25f}, {8192}, {{10}, {0}, {0}});
    const States plain = step(kExact, 1, {}, {4}, {{10}, {0}, {0}});
    EXPECT_EQ(scaled.m, plain.m);
    EXPECT_EQ(scaled.v, plain.v);
    EXPECT_EQ(scaled.p, plain.p);
}

// FC11: a tail that is not stepped, around the block and in each type of gradient.
TEST(Adam, EveryElementIsSteppedByItself) {
    const ParameterGroup group{.learning_rate = 0.0625f,
                               .beta1 = 0.875f,
                               .beta2 = 0.96875f,
                               .epsilon = 0.125f,
                               .weight_decay = 0.125f};
    std::mt19937 random(3);
    for (const DType type : {DType::fp32, DType::bf16, DType::fp16})
        for (const std::size_t length : {0, 1, 3, 255, 256, 257, 600}) {
            States s;
            std::vector<std::byte> gradient(length * memory::size_of(type));
            for (std::size_t i = 0; i < length; ++i) {
                const auto small = [&] { return static_cast<float>(random() % 256) / 64 - 2; };
                memory::store_element(type, gradient.data(), i, double{small()});
                s.p.push_back(small());
                s.m.push_back(small());
                s.v.push_back(std::abs(small()));
            }
            States now = s;
            adam_step(group, 3, {}, {type, gradient.data(), length}, now.p, now.m, now.v);
            for (std::size_t i = 0; i < length; ++i) {
                const double g = memory::load_element(type, gradient.data(), i);
                const double m = 0.875 * double{s.m[i]} + 0.125 * g;
                const double v = 0.96875 * double{s.v[i]} + 0.03125 * g * g;
                const double m_hat = m / (1 - std::pow(0.875, 3));
                const double v_hat = v / (1 - std::pow(0.96875, 3));
                const double p = double{s.p[i]};
                EXPECT_NEAR(double{now.m[i]}, m, 1e-6);
                EXPECT_NEAR(double{now.v[i]}, v, 1e-6);
                EXPECT_NEAR(double{now.p[i]},
                            p - 0.0625 * (m_hat / (std::sqrt(v_hat) + 0.125) + 0.125 * p), 1e-6);
            }
        }
}

}  // namespace
}  // namespace zeroproof::reference
