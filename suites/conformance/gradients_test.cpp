// The claim that exact comparison rests on, by brute force.
#include "suites/conformance/gradients.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

namespace zeroproof::suites {
namespace {

constexpr std::size_t kElements = 96;

Case case_of(Precision precision, int ranks, int micro_steps, std::size_t uses) {
    Case c;
    c.precision = precision;
    c.ranks = ranks;
    c.micro_steps = micro_steps;
    c.parameters.push_back({"a", {kElements}});
    for (std::size_t u = 0; u < uses; ++u) c.units.push_back({"u", {0}});
    return c;
}

double rounded(memory::DType type, double value) {
    double room = 0;
    memory::store_element(type, &room, 0, value);
    return memory::load_element(type, &room, 0);
}

// Adds in the type's own arithmetic; counts the sums that are not exact.
double sum(memory::DType type, const std::vector<double>& terms, std::size_t& inexact) {
    double total = 0;
    for (const double term : terms) {
        inexact += rounded(type, total + term) != total + term;
        total = rounded(type, total + term);
    }
    return total;
}

struct Shape {
    Precision precision;
    int ranks;
    int micro_steps;
    std::size_t uses;
};
std::vector<Shape> all_shapes() {
    std::vector<Shape> shapes;
    for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16})
        for (const int ranks : {1, 2, 3, 4, 5, 8, 12})
            for (const int micro_steps : {1, 2, 3, 4})
                for (const std::size_t uses : {1, 2})
                    shapes.push_back({precision, ranks, micro_steps, uses});
    return shapes;
}
std::string told(const Shape& s) {
    return fmt::format("{}, {} ranks, {} micro-steps, {} uses", name_of(s.precision), s.ranks,
                       s.micro_steps, s.uses);
}

class ExactGradients : public testing::Test {
  protected:
    // The contributions to one element of the window that begins at `first`, rank by rank.
    static std::vector<double> contributions(const Case& c, std::size_t uses, std::size_t first,
                                             std::size_t element) {
        const Gradients gradients(c, c.ranks);
        std::vector<double> all;
        for (int rank = 0; rank < c.ranks; ++rank)
            for (std::size_t k = 0; k < static_cast<std::size_t>(c.micro_steps); ++k)
                for (std::size_t use = 0; use < uses; ++use)
                    all.push_back(gradients.value({rank, first + k, use}, 0, element));
        return all;
    }
};

// With and without the loss scale; in order, reversed, shuffled, and with ranks summed up first.
TEST_F(ExactGradients, NoPartialSumRoundsInAnyOrderAndTheMeanIsExact) {
    std::mt19937 random(7);
    for (const Shape& s : all_shapes()) {
        const Case c = case_of(s.precision, s.ranks, s.micro_steps, s.uses);
        const memory::DType type = weight_type(s.precision);
        const double scale = c.loss_scale_at_start();
        const double n = s.ranks;
        const double ga = s.micro_steps;
        std::size_t inexact = 0;
        for (std::size_t element = 0; element < kElements; ++element) {
            auto terms = contributions(c, s.uses, 0, element);
            for (double& term : terms) {
                term *= scale;
                inexact += rounded(type, term) != term;
            }
            const double total = sum(type, terms, inexact);
            std::vector<double> local;
            for (std::size_t at = 0; at < terms.size(); at += terms.size() / c.ranks)
                local.push_back(
                    sum(type,
                        {terms.begin() + static_cast<long>(at),
                         terms.begin() + static_cast<long>(at + terms.size() / c.ranks)},
                        inexact));
            EXPECT_EQ(sum(type, local, inexact), total);
            // Divided beforehand, by N, by GA or by both: still exact, and the same mean.
            for (const double divisor : {n, ga, n * ga}) {
                std::vector<double> parts = terms;
                for (double& part : parts) {
                    part /= divisor;
                    inexact += rounded(type, part) != part;
                }
                const double mean = sum(type, parts, inexact);
                EXPECT_EQ(mean, total / divisor);
                EXPECT_EQ(mean * divisor, total) << "the division rounds";
            }
            inexact += rounded(type, total / (n * ga)) != total / (n * ga);
            for (int order = 0; order < 4; ++order) {
                if (order == 0)
                    std::ranges::reverse(terms);
                else
                    std::ranges::shuffle(terms, random);
                EXPECT_EQ(sum(type, terms, inexact), total);
            }
        }
        EXPECT_EQ(inexact, 0u) << told(s);
    }
}

// Covers the orders that were not tried: no sum of any subset outgrows the mantissa.
TEST_F(ExactGradients, SumOfSizesFitsTheMantissa) {
    for (const Shape& s : all_shapes()) {
        const Case c = case_of(s.precision, s.ranks, s.micro_steps, s.uses);
        const int mantissa = s.precision == Precision::bf16   ? 8
                             : s.precision == Precision::fp16 ? 11
                                                              : 24;
        int unit = s.ranks * s.micro_steps;
        while (unit % 2 == 0) unit /= 2;
        for (std::size_t element = 0; element < kElements; ++element) {
            double digits = 0;
            for (const double term : contributions(c, s.uses, 0, element)) {
                const double digit = term * 64 / (s.ranks * s.micro_steps);
                EXPECT_EQ(digit, std::trunc(digit)) << told(s);
                digits += std::abs(digit);
            }
            EXPECT_LE(digits * unit, std::ldexp(1, mantissa)) << told(s);
            EXPECT_GT(digits, 0) << told(s) << ": an element without any contribution";
        }
    }
}

// Otherwise a lost contribution could go unnoticed.
TEST_F(ExactGradients, EveryContributionIsNonZeroSomewhereAndDistinguishable) {
    for (const Shape& s : all_shapes()) {
        const Case c = case_of(s.precision, s.ranks, s.micro_steps, s.uses);
        std::vector<std::vector<double>> by_element;
        for (std::size_t element = 0; element < kElements; ++element)
            by_element.push_back(contributions(c, s.uses, 0, element));
        std::set<std::vector<double>> columns;
        for (std::size_t i = 0; i < by_element[0].size(); ++i) {
            std::vector<double> column;
            for (const auto& terms : by_element) column.push_back(terms[i]);
            EXPECT_NE(std::ranges::count(column, 0.0), static_cast<long>(kElements))
                << told(s) << ": contribution " << i << " is zero everywhere";
            columns.insert(column);
        }
        EXPECT_EQ(columns.size(), by_element[0].size()) << told(s) << ": two look alike";
        EXPECT_NE(by_element, std::vector(kElements, by_element[0])) << told(s);
    }
}

TEST_F(ExactGradients, WindowsDiffer) {
    const Case c = case_of(Precision::bf16, 3, 2, 1);
    std::size_t same = 0;
    for (std::size_t e = 0; e < kElements; ++e)
        same += contributions(c, 1, 0, e) == contributions(c, 1, 2, e);
    EXPECT_LT(same, kElements / 2);
}

// Larger N * GA than the sums allow with digits up to 4, and the largest that is possible at all.
TEST_F(ExactGradients, ManyRanksStayExactUntilTheirOddPartFillsTheMantissa) {
    for (const auto& [ranks, micro_steps, possible] :
         {std::tuple{51, 5, true}, {63, 4, true}, {64, 1024, true}, {63, 5, false}}) {
        const Case c = case_of(Precision::bf16, ranks, micro_steps, 1);
        EXPECT_EQ(Gradients::can_be_exact(c, ranks), possible) << ranks << " " << micro_steps;
        if (!possible || micro_steps > 5) continue;
        std::size_t inexact = 0;
        for (std::size_t e = 0; e < kElements; ++e)
            (void)sum(memory::DType::bf16, contributions(c, 1, 0, e), inexact);
        EXPECT_EQ(inexact, 0u) << ranks << " " << micro_steps;
    }
    EXPECT_TRUE(Gradients::can_be_exact(case_of(Precision::bf16, 1, 1, 1), 0));
}

TEST(Gradients, UnusedIsZeroAndAnInjectionIsItselfInOnePlace) {
    Case c = case_of(Precision::fp32, 2, 2, 1);
    c.parameters[0].usage = Usage::even_ranks;
    c.injections.push_back({3, 0, 0, 5, INFINITY});
    const Gradients gradients(c, 2);
    std::size_t infinite = 0;
    for (std::size_t k = 0; k < 4; ++k)
        for (std::size_t e = 0; e < kElements; ++e) {
            infinite += std::isinf(gradients.value({0, k, 0}, 0, e));
            EXPECT_EQ(gradients.value({1, k, 0}, 0, e), 0);
        }
    EXPECT_EQ(infinite, 1u);
    EXPECT_EQ(gradients.value({0, 3, 0}, 0, 5), INFINITY);
    std::vector<float> filled(kElements);
    gradients.fill({0, 1, 0}, 0, filled);
    for (std::size_t e = 0; e < kElements; ++e)
        EXPECT_EQ(filled[e], gradients.value({0, 1, 0}, 0, e));
}

TEST(Gradients, RoundingKindFillsTheMantissaOfItsTypeAndNoMore) {
    for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
        Case c = case_of(precision, 2, 1, 1);
        c.gradients = GradientKind::rounding;
        const Gradients gradients(c, 2);
        std::set<double> values;
        for (std::size_t e = 0; e < kElements; ++e) {
            const double g = gradients.value({1, 0, 0}, 0, e);
            EXPECT_LE(std::abs(g), 1);
            EXPECT_EQ(g, rounded(weight_type(precision), g));
            values.insert(g);
        }
        EXPECT_GT(values.size(), kElements / 2);
    }
}

// A master that is made from the rounded weight must show.
TEST(Gradients, InitialWeightsAreExactInFp32AloneAndDifferByNameAndSeed) {
    Case c = case_of(Precision::bf16, 1, 1, 1);
    c.parameters.push_back({"b", {kElements}});
    Case other = c;
    other.seed = 2;
    std::size_t same = 0;
    for (std::size_t e = 0; e < kElements; ++e) {
        const double w = Gradients::initial_weight(c, 0, e);
        EXPECT_LT(std::abs(w), 2);
        EXPECT_EQ(w, rounded(memory::DType::fp32, w));
        EXPECT_NE(w, rounded(memory::DType::bf16, w));
        EXPECT_NE(w, rounded(memory::DType::fp16, w));
        same += w == Gradients::initial_weight(c, 1, e);
        same += w == Gradients::initial_weight(other, 0, e);
    }
    EXPECT_LT(same, kElements / 4);
}

}  // namespace
}  // namespace zeroproof::suites
