// The oracle against numbers worked out by hand and a direct loop in long double.
#include "suites/conformance/oracle.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "suites/conformance/comparison.h"
#include "suites/conformance/family.h"
#include "suites/conformance/gradients.h"

namespace zeroproof::suites {
namespace {

// One parameter "a" of 3 elements; `extra` is more JSON.
Case read(const std::string& extra,
          const std::string& program = R"(["window", "window", "window"])") {
    return read_family(fmt::format(R"({{"family": "f", "purpose": "p", "program": {},
                                        "parameters": [{{"name": "a", "shape": [3]}}] {} {}}})",
                                   program, extra.empty() ? "" : ",", extra),
                       "f.json")
        .front();
}

// The mean of a window, summed here.
double mean(const Case& c, int ranks, std::size_t first, std::size_t element) {
    const Gradients gradients(c, ranks);
    double sum = 0;
    for (int rank = 0; rank < ranks; ++rank)
        for (std::size_t k = 0; k < static_cast<std::size_t>(c.micro_steps); ++k)
            sum += gradients.value({rank, first + k, 0}, 0, element);
    return sum / ranks / c.micro_steps;
}

enum class Root { outside, inside };

// Adam as a number type would evaluate it: the direct loop.
template <typename Real>
struct DirectAdam {
    Real p;
    Real m = 0;
    Real v = 0;
    void step(const GroupCase& group, int t, Real g, Root epsilon = Root::outside) {
        const auto b1 = static_cast<Real>(group.beta1);
        const auto b2 = static_cast<Real>(group.beta2);
        const auto rate = static_cast<Real>(group.learning_rate);
        const auto eps = static_cast<Real>(group.epsilon);
        const auto decay = static_cast<Real>(group.weight_decay);
        if (group.l2) g += decay * p;
        m = b1 * m + (1 - b1) * g;
        v = b2 * v + (1 - b2) * g * g;
        const Real m_hat = m / (1 - static_cast<Real>(std::pow(group.beta1, t)));
        const Real v_hat = v / (1 - static_cast<Real>(std::pow(group.beta2, t)));
        const Real down =
            epsilon == Root::outside ? std::sqrt(v_hat) + eps : std::sqrt(v_hat + eps);
        p -= rate * (m_hat / down + (group.l2 ? 0 : decay * p));
    }
};

// m = 0.125 * 8 = 1, v = 64 / 32 = 2, m_hat = 8, v_hat = 64, p = 1 - 2^-6 * 8 / (8 + 0.125).
TEST(Oracle, FirstStepByHand) {
    DirectAdam<long double> adam{1};
    adam.step(GroupCase{}, 1, 8);
    EXPECT_EQ(adam.m, 1);
    EXPECT_EQ(adam.v, 2);
    EXPECT_NEAR(static_cast<double>(adam.p), 1 - 0.015625 * 8 / 8.125, 1e-17);
}

TEST(Oracle, AdamEqualsTheDirectLoopInBothFormsOfDecay) {
    for (const char* groups :
         {R"([{}])", R"([{"learning_rate": 0.25, "epsilon": 0.0009765625}])",
          R"([{"learning_rate": 0.25, "weight_decay": 0.125}])",
          R"([{"learning_rate": 0.25, "weight_decay": 0.125, "decay": "l2"}])"}) {
        const Case c = read(fmt::format(R"("groups": {}, "ranks": 3, "micro_steps": 2)", groups));
        const auto expected = expect(c);
        ASSERT_EQ(expected.size(), 4u);
        for (std::size_t e = 0; e < 3; ++e) {
            DirectAdam<long double> wide{Gradients::initial_weight(c, 0, e)};
            DirectAdam<float> narrow{static_cast<float>(wide.p)};
            DirectAdam<double> wrong{static_cast<double>(wide.p)};
            for (int t = 1; t <= 3; ++t) {
                const double g = mean(c, 3, 2 * (static_cast<std::size_t>(t) - 1), e);
                wide.step(c.groups[0], t, g);
                narrow.step(c.groups[0], t, static_cast<float>(g));
                wrong.step(c.groups[0], t, g, Root::inside);
                const Expected& now = expected[static_cast<std::size_t>(t)];
                const ExpectedParameter& a = now.parameters[0];
                EXPECT_EQ(now.steps_taken, t);
                EXPECT_EQ(a.gradient[e].value, g);
                EXPECT_EQ(a.gradient[e].error, 0);
                EXPECT_NEAR(a.momentum[e].value, static_cast<double>(wide.m), 1e-15);
                EXPECT_NEAR(a.variance[e].value, static_cast<double>(wide.v), 1e-15);
                EXPECT_NEAR(a.master[e].value, static_cast<double>(wide.p), 1e-15) << groups;
                // The bound takes any fp32 evaluation, and not epsilon under the root.
                EXPECT_TRUE(matches(double{narrow.m}, a.momentum[e])) << groups;
                EXPECT_TRUE(matches(double{narrow.v}, a.variance[e])) << groups;
                EXPECT_TRUE(matches(double{narrow.p}, a.master[e])) << groups;
                EXPECT_FALSE(matches(wrong.p, a.master[e])) << groups;
                EXPECT_LT(a.master[e].error, 1e-5);
            }
        }
    }
}

// The two forms differ by far more than the bound: neither passes for the other.
TEST(Oracle, FormsOfDecayAreTold) {
    const char* group =
        R"("groups": [{{"learning_rate": 0.25, "weight_decay": 0.125, "decay": "{}"}}])";
    const auto decoupled = expect(read(fmt::format(fmt::runtime(group), "decoupled")));
    const auto l2 = expect(read(fmt::format(fmt::runtime(group), "l2")));
    for (std::size_t e = 0; e < 3; ++e) {
        EXPECT_FALSE(
            matches(l2[1].parameters[0].master[e].value, decoupled[1].parameters[0].master[e]));
        EXPECT_EQ(decoupled[1].parameters[0].momentum[e].value,
                  0.125 * decoupled[1].parameters[0].gradient[e].value);
    }
}

TEST(Oracle, ZeroGradDiscardsAndTheWindowRestarts) {
    const Case c = read(R"("micro_steps": 2)", R"(["micro_step", "zero_grad", "window"])");
    const Expected last = expect(c).back();
    EXPECT_EQ(last.window_begin, 1u);
    EXPECT_EQ(last.window_end, 3u);
    for (std::size_t e = 0; e < 3; ++e)
        EXPECT_EQ(last.parameters[0].gradient[e].value, mean(c, 1, 1, e));
}

TEST(Oracle, NormAndClippingByTheDirectSum) {
    for (const double bound : {0.0, 0.0625, 1000.0}) {
        const Case c = read(fmt::format(R"("clip_norm": {}, "ranks": 2)", bound));
        const Expected now = expect(c)[1];
        double squares = 0;
        for (std::size_t e = 0; e < 3; ++e) squares += std::pow(mean(c, 2, 0, e), 2);
        EXPECT_EQ(now.norm.value, std::sqrt(squares));
        EXPECT_EQ(now.norm.error, 0);
        const bool clips = bound == 0.0625;
        EXPECT_EQ(now.clip_coefficient.value, clips ? bound / std::sqrt(squares) : 1);
        for (std::size_t e = 0; e < 3; ++e) {
            EXPECT_EQ(now.parameters[0].gradient[e].value, mean(c, 2, 0, e)) << "before clipping";
            EXPECT_NEAR(now.parameters[0].momentum[e].value,
                        0.125 * mean(c, 2, 0, e) * now.clip_coefficient.value, 1e-15);
        }
    }
}

// hysteresis 2, interval 2, minimum 128: x is an overflow, s a step.
//   x x x s s x x : 256 (one overflow is free), 128, 128 (the minimum), 128, 256 (grows), 256, 128
TEST(Oracle, LossScaleSequenceByHand) {
    std::string inject;
    for (const int k : {0, 1, 2, 5, 6})
        inject += fmt::format(R"({}{{"micro_step": {}, "rank": 0, "parameter": "a", "element": 1,
                                     "value": "nan"}})",
                              inject.empty() ? "" : ",", k);
    const std::string program =
        R"(["window", "window", "window", "window", "window", "window", "window"])";
    const std::string extra = fmt::format(
        R"("inject": [{}],
           "loss_scale": {{"initial": 256, "growth_interval": 2, "hysteresis": 2, "minimum": 128}})",
        inject);
    const auto fp16 = expect(read(extra + R"(, "precision": "fp16")", program));
    const auto bf16 = expect(read(extra + R"(, "precision": "bf16")", program));
    const double scales[] = {256, 256, 128, 128, 128, 256, 256, 128};
    const std::int64_t taken[] = {0, 0, 0, 0, 1, 2, 2, 2};
    for (std::size_t i = 0; i < 8; ++i) {
        EXPECT_EQ(fp16[i].loss_scale, scales[i]) << i;
        EXPECT_EQ(bf16[i].loss_scale, 1) << i;
        for (const auto* run : {&fp16, &bf16}) {
            const Expected& now = (*run)[i];
            EXPECT_EQ(now.steps_taken, taken[i]) << i;
            EXPECT_EQ(now.steps_taken + now.steps_skipped, static_cast<std::int64_t>(i));
            if (i == 0 || !now.skipped) continue;
            const ExpectedParameter& before = (*run)[i - 1].parameters[0];
            for (std::size_t e = 0; e < 3; ++e) {
                EXPECT_EQ(now.parameters[0].master[e].value, before.master[e].value);
                EXPECT_EQ(now.parameters[0].momentum[e].value, before.momentum[e].value);
                EXPECT_EQ(now.parameters[0].variance[e].value, before.variance[e].value);
            }
        }
    }
}

TEST(Oracle, AfterAReloadTheOtherRanksCountAndNothingElseChanges) {
    const Case c = read(R"("ranks": 2, "resume_ranks": 3)", R"(["window", "reload", "window"])");
    const auto expected = expect(c);
    ASSERT_EQ(expected.size(), 4u);
    for (std::size_t e = 0; e < 3; ++e) {
        EXPECT_EQ(expected[2].parameters[0].master[e].value,
                  expected[1].parameters[0].master[e].value);
        EXPECT_EQ(expected[3].parameters[0].gradient[e].value, mean(c, 3, 1, e));
    }
    EXPECT_EQ(expected[3].steps_taken, 2);
}

// A narrower type on the way must not hide in the bound, nor an honest reduction fall out of it.
TEST(Oracle, BoundOfRoundingGradientsTakesItsTypeAndNoNarrowerOne) {
    const Case c = read(R"("gradients": "rounding", "ranks": 8)");
    const auto gradient = expect(c)[1].parameters[0].gradient;
    const Gradients gradients(c, 8);
    std::size_t told_apart = 0;
    for (std::size_t e = 0; e < 3; ++e) {
        float single = 0;
        double half = 0;
        for (int rank = 0; rank < 8; ++rank) {
            const double g = gradients.value({rank, 0, 0}, 0, e);
            single += static_cast<float>(g);
            half += double{memory::to_float(memory::to_half(static_cast<float>(g)))};
        }
        EXPECT_TRUE(matches(double{single / 8}, gradient[e]));
        told_apart += !matches(half / 8, gradient[e]);
    }
    EXPECT_EQ(told_apart, 3u);
}

}  // namespace
}  // namespace zeroproof::suites
