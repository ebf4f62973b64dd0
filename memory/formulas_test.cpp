#include "memory/formulas.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

namespace zeroproof::memory {
namespace {

constexpr double kGB = 1e9;

double nominal_gb(int stage, double phi, int ranks) {
    return nominal_model_state_bytes(stage, state_bytes(DType::fp16), phi, ranks) / kGB;
}

TEST(Formulas, FigureOneOfTheZeroPaper) {
    const double printed[] = {120, 31.4, 16.6, 1.9};
    for (int stage = 0; stage <= 3; ++stage)
        EXPECT_NEAR(nominal_gb(stage, 7.5e9, 64), printed[stage], 0.05) << stage;
}

// The printed cells are partly rounded, partly truncated: less than one unit of the last digit.
TEST(Formulas, TableOneOfTheZeroPaper) {
    struct Cell {
        double value;
        double unit;
    };
    const struct {
        int ranks;
        Cell cells[3][3];  // by model, by stage 1 to 3
    } rows[] = {
        {1,
         {{{120, 1}, {120, 1}, {120, 1}},
          {{2048, 1}, {2048, 1}, {2048, 1}},
          {{16000, 1}, {16000, 1}, {16000, 1}}}},
        {4,
         {{{52.5, .1}, {41.3, .1}, {30, 1}},
          {{896, 1}, {704, 1}, {512, 1}},
          {{7000, 1}, {5500, 1}, {4000, 1}}}},
        {16,
         {{{35.6, .1}, {21.6, .1}, {7.5, .1}},
          {{608, 1}, {368, 1}, {128, 1}},
          {{4750, 1}, {2875, 1}, {1000, 1}}}},
        {64,
         {{{31.4, .1}, {16.6, .1}, {1.88, .01}},
          {{536, 1}, {284, 1}, {32, 1}},
          {{4187, 1}, {2218, 1}, {250, 1}}}},
        {256,
         {{{30.4, .1}, {15.4, .1}, {0.47, .01}},
          {{518, 1}, {263, 1}, {8, 1}},
          {{4046, 1}, {2054, 1}, {62.5, .1}}}},
        {1024,
         {{{30.1, .1}, {15.1, .1}, {0.12, .01}},
          {{513, 1}, {257, 1}, {2, 1}},
          {{4011, 1}, {2013, 1}, {15.6, .1}}}},
    };
    const double parameters[] = {7.5e9, 128e9, 1e12};
    for (const auto& row : rows)
        for (int model = 0; model < 3; ++model)
            for (int stage = 1; stage <= 3; ++stage) {
                const Cell& cell = row.cells[model][stage - 1];
                EXPECT_LT(std::abs(nominal_gb(stage, parameters[model], row.ranks) - cell.value),
                          cell.unit)
                    << row.ranks << " ranks, " << parameters[model] << ", stage " << stage;
            }
}

TEST(Formulas, BytesPerParameter) {
    const struct {
        DType type;
        StateBytes bytes;
    } cases[] = {{DType::fp16, {2, 2, 12}}, {DType::bf16, {2, 2, 12}}, {DType::fp32, {4, 4, 8}}};
    for (const auto& c : cases) {
        const StateBytes bytes = state_bytes(c.type);
        EXPECT_EQ(bytes.weight, c.bytes.weight);
        EXPECT_EQ(bytes.gradient, c.bytes.gradient);
        EXPECT_EQ(bytes.optimizer, c.bytes.optimizer);
        EXPECT_EQ(nominal_model_state_bytes(0, bytes, 1000, 8), 16000);
    }
}

TEST(Formulas, ExactIsNominalWhenNothingIsPaddedOrFrozen) {
    for (const DType type : {DType::fp16, DType::fp32})
        for (const int ranks : {1, 2, 3, 8})
            for (int stage = 0; stage <= 3; ++stage) {
                const std::size_t phi = 24 * 1001;
                const auto exact =
                    exact_model_state_bytes(stage, state_bytes(type), {phi, 0, phi, 0}, ranks);
                EXPECT_DOUBLE_EQ(static_cast<double>(exact.total()),
                                 nominal_model_state_bytes(stage, state_bytes(type),
                                                           static_cast<double>(phi), ranks))
                    << stage << " " << ranks;
            }
}

TEST(Formulas, ExactCountsPaddingAndFrozenWeights) {
    const Counts counts{10, 5, 12, 8};  // over 4 ranks
    const struct {
        int stage;
        ModelStates expected;
    } cases[] = {
        {0, {2 * (10 + 5), 2 * 10, 12 * 10}},
        {1, {2 * (12 + 5), 2 * 12, 12 * 3}},
        {2, {2 * (12 + 5), 2 * 3, 12 * 3}},
        {3, {2 * (3 + 2), 2 * 3, 12 * 3}},
    };
    for (const auto& c : cases) {
        const auto exact = exact_model_state_bytes(c.stage, state_bytes(DType::bf16), counts, 4);
        EXPECT_EQ(exact.weight, c.expected.weight) << c.stage;
        EXPECT_EQ(exact.gradient, c.expected.gradient) << c.stage;
        EXPECT_EQ(exact.optimizer, c.expected.optimizer) << c.stage;
        EXPECT_EQ(exact.total(), exact.weight + exact.gradient + exact.optimizer) << c.stage;
    }
}

TEST(Formulas, NonsenseIsRejected) {
    const StateBytes bytes = state_bytes(DType::fp16);
    const Counts good{8, 0, 8, 0};
    for (const int stage : {-1, 4}) {
        EXPECT_THROW(nominal_model_state_bytes(stage, bytes, 8, 4), std::invalid_argument);
        EXPECT_THROW(exact_model_state_bytes(stage, bytes, good, 4), std::invalid_argument);
    }
    for (const int ranks : {0, -2}) {
        EXPECT_THROW(nominal_model_state_bytes(1, bytes, 8, ranks), std::invalid_argument);
        EXPECT_THROW(exact_model_state_bytes(1, bytes, good, ranks), std::invalid_argument);
    }
    for (const Counts& counts :
         {Counts{8, 0, 9, 0}, Counts{9, 0, 8, 0}, Counts{8, 1, 8, 3}, Counts{8, 5, 8, 4}})
        EXPECT_THROW(exact_model_state_bytes(1, bytes, counts, 4), std::invalid_argument);
}

}  // namespace
}  // namespace zeroproof::memory
