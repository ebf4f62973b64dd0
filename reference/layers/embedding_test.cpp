// Rows of a table, and what flows back into them.
#include "reference/layers/embedding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "reference/layers/differences.h"

namespace zeroproof::reference {
namespace {

constexpr std::size_t kVocabulary = 5, kColumns = 3, kSequence = 4;
// Two samples. Token 1 stands four times, 4 once, 3 never.
const std::vector<std::int32_t> kTokens{1, 0, 1, 2, 1, 1, 4, 0};

template <typename T>
class EmbeddingOfType : public testing::Test {};
using AllTypes = testing::Types<float, double, Half, BFloat16>;
TYPED_TEST_SUITE(EmbeddingOfType, AllTypes);

template <typename T>
std::vector<T> integers(std::size_t count, int first) {
    std::vector<double> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(first + static_cast<double>(i % 11));
    return rounded<T>(values);
}

// Catches a row of another token, positions that go on from sample to sample, and elements beside
// the matrix. Sums of small integers are exact in each type.
TYPED_TEST(EmbeddingOfType, RowsAreThoseOfTheTokens) {
    using T = TypeParam;
    const std::vector<T> table = integers<T>(kVocabulary * kColumns, -3);
    const std::vector<T> positions = integers<T>(kSequence * kColumns, 20);
    for (const bool with_positions : {false, true}) {
        // Of a wider matrix, whose last column is to stay.
        std::vector<T> y(kTokens.size() * (kColumns + 1), narrow<T>(99));
        const Matrix<T> rows(y.data(), kTokens.size(), kColumns, kColumns + 1);
        embed<T>(kTokens, {table.data(), kVocabulary, kColumns},
                 with_positions ? Matrix<const T>(positions.data(), kSequence, kColumns)
                                : Matrix<const T>(),
                 rows);
        for (std::size_t i = 0; i < kTokens.size(); ++i) {
            for (std::size_t j = 0; j < kColumns; ++j) {
                const auto token = static_cast<std::size_t>(kTokens[i]);
                const auto position = widen(positions[i % kSequence * kColumns + j]);
                EXPECT_EQ(widen(rows.row(i)[j]),
                          widen(table[token * kColumns + j]) + (with_positions ? position : 0));
            }
            EXPECT_EQ(widen(y[i * (kColumns + 1) + kColumns]), 99);
        }
    }
}

TYPED_TEST(EmbeddingOfType, TokensBeyondTheTableAreRefused) {
    using T = TypeParam;
    const std::vector<T> table(kVocabulary * kColumns);
    std::vector<T> y(kColumns);
    for (const std::int32_t token : {-1, static_cast<std::int32_t>(kVocabulary), 1 << 30}) {
        const std::vector<std::int32_t> tokens{token};
        EXPECT_THROW(
            embed<T>(tokens, {table.data(), kVocabulary, kColumns}, {}, {y.data(), 1, kColumns}),
            std::out_of_range);
    }
}

// Catches a use of a repeated token that is left out or counted twice, a row of a token that does
// not stand there, and gradients that are put in place of what is there. Integers: exact.
TYPED_TEST(EmbeddingOfType, BackwardAddsEachUse) {
    using T = TypeParam;
    const std::vector<T> dy = integers<T>(kTokens.size() * kColumns, 1);
    for (const bool with_positions : {false, true}) {
        std::vector<T> table = integers<T>(kVocabulary * kColumns, 7);
        std::vector<T> positions = integers<T>(kSequence * kColumns, 2);
        std::vector<double> expected_table = widened<T>(table);
        std::vector<double> expected_positions = widened<T>(positions);
        for (std::size_t i = 0; i < kTokens.size(); ++i)
            for (std::size_t j = 0; j < kColumns; ++j) {
                const auto token = static_cast<std::size_t>(kTokens[i]);
                const double gradient = double{widen(dy[i * kColumns + j])};
                expected_table[token * kColumns + j] += gradient;
                if (with_positions) expected_positions[i % kSequence * kColumns + j] += gradient;
            }
        memory::Space space("device");
        embed_backward<T>(
            kTokens, {dy.data(), kTokens.size(), kColumns}, {table.data(), kVocabulary, kColumns},
            with_positions ? Matrix<T>(positions.data(), kSequence, kColumns) : Matrix<T>(), space);
        EXPECT_EQ(widened<T>(table), expected_table);
        EXPECT_EQ(widened<T>(positions), expected_positions);
    }
}

// 2400 ones added to 16, and 300 to 2. Catches a sum that is rounded at each use: in bf16 it would
// stay at 256, in fp16 at 2048.
TYPED_TEST(EmbeddingOfType, AManyTimesRepeatedTokenIsRoundedOnce) {
    using T = TypeParam;
    const std::vector<std::int32_t> tokens(2400, 0);
    const std::vector<T> dy(tokens.size(), narrow<T>(1));
    std::vector<T> table{narrow<T>(16)};
    std::vector<T> positions(8, narrow<T>(2));
    memory::Space space("device");
    embed_backward<T>(tokens, {dy.data(), tokens.size(), 1}, {table.data(), 1, 1},
                      {positions.data(), 8, 1}, space);
    EXPECT_EQ(widen(table[0]), 2416);  // which all types have
    for (const T& position : positions) EXPECT_EQ(widen(position), 302);
}

TEST(Embedding, GradientsAreTheDifferences) {
    std::vector<double> table = numbers(kVocabulary * kColumns, 1);
    std::vector<double> positions = numbers(kSequence * kColumns, 2);
    std::vector<double> y(kTokens.size() * kColumns);
    const std::vector<double> dy = numbers(y.size(), 3);
    std::vector<double> of_table(table.size());
    std::vector<double> of_positions(positions.size());
    memory::Space space("device");
    embed_backward<double>(kTokens, {dy.data(), kTokens.size(), kColumns},
                           {of_table.data(), kVocabulary, kColumns},
                           {of_positions.data(), kSequence, kColumns}, space);
    const auto loss = [&] {
        embed<double>(kTokens, {table.data(), kVocabulary, kColumns},
                      {positions.data(), kSequence, kColumns},
                      {y.data(), kTokens.size(), kColumns});
        return weighted_sum(y, dy);
    };
    expect_gradient("table", table, of_table, loss);
    expect_gradient("positions", positions, of_positions, loss);
}

// What the planner counts: a row in fp32, and a number of 4 bytes for each token.
TEST(Embedding, BackwardTakesARowAndANumberForEachToken) {
    memory::Space space("device");
    const std::vector<Half> dy(kTokens.size() * kColumns);
    std::vector<Half> table(kVocabulary * kColumns);
    embed_backward<Half>(kTokens, {dy.data(), kTokens.size(), kColumns},
                         {table.data(), kVocabulary, kColumns}, {}, space);
    EXPECT_EQ(space.ledger().peak_bytes(memory::Category::activation),
              4 * kColumns + 4 * kTokens.size());
    EXPECT_EQ(space.ledger().peak_bytes(), 4 * kColumns + 4 * kTokens.size());
    EXPECT_EQ(space.ledger().live_bytes(), 0u);
}

}  // namespace
}  // namespace zeroproof::reference
