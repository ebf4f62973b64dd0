// Each way in which a gradient goes wrong has its sentence, and a right one has none.
#include "suites/conformance/diagnosis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "suites/conformance/family.h"
#include "suites/conformance/gradients.h"

namespace zeroproof::suites {
namespace {

// 3 ranks, 4 micro-steps, a parameter with 2 uses; of two windows the second is looked at.
class Diagnosis : public testing::Test {
  protected:
    static constexpr std::size_t kElements = 40;

    Diagnosis()
        : case_(read_family(R"({"family": "f", "purpose": "p", "precision": "fp16", "ranks": 3,
                                "micro_steps": 4, "parameters": [{"name": "a", "shape": [40]}],
                                "units": [["a"], ["a"]], "program": ["window", "window"]})",
                            "f.json")
                    .front()),
          history_(expect(case_)),
          gradients_(case_, 3) {}

    // What these contribute to the mean of an element; negative is all.
    double part(std::size_t element, int rank, int micro_step, int use) const {
        double sum = 0;
        for (int r = 0; r < 3; ++r)
            for (int k = 0; k < 4; ++k)
                for (int u = 0; u < 2; ++u)
                    if ((rank < 0 || r == rank) && (micro_step < 0 || k == micro_step) &&
                        (use < 0 || u == use))
                        sum += gradients_.value(
                            {r, 4 + static_cast<std::size_t>(k), static_cast<std::size_t>(u)}, 0,
                            element);
        return sum / 12;
    }
    double of_step(std::size_t step, std::size_t element) const {
        return history_[step].parameters[0].gradient[element].value;
    }
    std::string told(std::size_t element, double seen) const {
        return diagnose_gradient(case_, 3, history_.back(), history_, 0, element, seen);
    }

    Case case_;
    std::vector<Expected> history_;
    Gradients gradients_;
};

// Digits are small, so that on some elements another hypothesis fits as well: it must be found on
// several of them.
TEST_F(Diagnosis, EachHypothesisHasItsSentence) {
    const auto right = [&](std::size_t e) { return of_step(2, e); };
    const struct {
        const char* sentence;
        std::function<double(std::size_t)> seen;
    } rows[] = {
        {"not a number", [](auto) { return std::numeric_limits<double>::quiet_NaN(); }},
        {"N times too large", [&](auto e) { return right(e) * 3; }},
        {"GA times too large", [&](auto e) { return right(e) * 4; }},
        {"N * GA times too large", [&](auto e) { return right(e) * 12; }},
        {"N times too small", [&](auto e) { return right(e) / 3; }},
        {"GA times too small", [&](auto e) { return right(e) / 4; }},
        {"not unscaled", [&](auto e) { return right(e) * 256; }},
        {"unscaled twice", [&](auto e) { return right(e) / 256; }},
        {"all ranks, micro-step 1 is missing",
         [&](auto e) { return right(e) - part(e, -1, 1, -1); }},
        {"all ranks, micro-step 2 is counted twice",
         [&](auto e) { return right(e) + part(e, -1, 2, -1); }},
        {"use 0 of the tied parameter is missing",
         [&](auto e) { return right(e) - part(e, -1, -1, 0); }},
        {"rank 2 is counted twice", [&](auto e) { return right(e) + part(e, 2, -1, -1); }},
        {"rank 1, micro-step 3 is missing", [&](auto e) { return right(e) - part(e, 1, 3, -1); }},
        {"only micro-step 0 contributed", [&](auto e) { return part(e, -1, 0, -1); }},
        {"the value of an earlier step: stale", [&](auto e) { return of_step(1, e); }},
        {"an earlier step's gradient is still in it",
         [&](auto e) { return right(e) + of_step(1, e); }},
        {"the value of element", [&](auto e) { return right((e + 1) % kElements); }},
        {"zero: nothing arrived", [](auto) { return 0.0; }},
    };
    for (const auto& [sentence, seen] : rows) {
        std::size_t found = 0;
        for (std::size_t e = 0; e < kElements; ++e)
            found += told(e, seen(e)).find(sentence) != std::string::npos;
        EXPECT_GE(found, kElements / 10) << sentence;
    }
}

TEST_F(Diagnosis, WhatNothingExplainsHasNoSentence) {
    EXPECT_EQ(told(0, 1e6 + 1.0 / 3), "");
    EXPECT_EQ(told(0, std::numeric_limits<double>::infinity()), "");
}

// With one rank and one micro-step, factors of 1 explain nothing.
TEST_F(Diagnosis, RightValueIsNeverAccused) {
    const Case c = read_family(R"({"family": "f", "purpose": "p", "program": ["window"],
                                   "parameters": [{"name": "a", "shape": [1]}]})",
                               "f.json")
                       .front();
    const auto history = expect(c);
    const double value = history.back().parameters[0].gradient[0].value;
    EXPECT_EQ(diagnose_gradient(c, 1, history.back(), history, 0, 0, value), "");
}

}  // namespace
}  // namespace zeroproof::suites
