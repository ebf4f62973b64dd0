// Attention against its formula, one head and all scores at a time, and its gradients against
// differences.
#include "reference/layers/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "reference/layers/differences.h"
#include "reference/tensor/matmul.h"

namespace zeroproof::reference {
namespace {

// What goes in and comes out, in one type.
template <typename T>
struct Attention {
    AttentionShape shape;
    std::size_t samples;
    std::vector<Dropout> dropout;
    std::vector<T> qkv, output, d_output, d_qkv;
    std::vector<Compute<T>> log_sums;
    memory::Space space{"device"};

    Attention(const AttentionShape& of, std::size_t sample_count, float dropped = 0)
        : shape(of),
          samples(sample_count),
          qkv(rounded<T>(numbers(tokens() * of.qkv_columns(), 1, 2))),
          output(tokens() * of.query_columns()),
          d_output(rounded<T>(numbers(output.size(), 2))),
          d_qkv(qkv.size()),
          log_sums(samples * of.heads * of.sequence) {
        set_threads_per_rank(1);
        for (std::size_t sample = 0; dropped > 0 && sample < samples; ++sample)
            dropout.push_back({dropped, 7, 5 + sample, 3, DropoutSite::probabilities});
    }
    template <typename Other>
    void start_as(const Attention<Other>& other) {
        qkv = rounded<T>(widened<Other>(other.qkv));
        d_output = rounded<T>(widened<Other>(other.d_output));
    }

    std::size_t tokens() const { return samples * shape.sequence; }
    Matrix<T> rows(std::vector<T>& of) const { return {of.data(), tokens(), of.size() / tokens()}; }
    Matrix<Compute<T>> sums() { return {log_sums.data(), samples * shape.heads, shape.sequence}; }
    void forward() { attend<T>(shape, rows(qkv), dropout, rows(output), sums(), space); }
    void backward() {
        attend_backward<T>(shape, rows(qkv), dropout, sums(), rows(d_output), rows(d_qkv), space);
    }
};

// The same by the formula. Beside each result stands the sum of the sizes of what was added for it.
struct Formula {
    std::vector<double> output, output_size, d_qkv, d_qkv_size, log_sums;

    explicit Formula(const Attention<double>& of)
        : output(of.output.size()),
          output_size(of.output.size()),
          d_qkv(of.qkv.size()),
          d_qkv_size(of.qkv.size()),
          log_sums(of.log_sums.size()) {
        for (std::size_t sample = 0; sample < of.samples; ++sample)
            for (std::size_t head = 0; head < of.shape.heads; ++head) one_head(of, sample, head);
    }

  private:
    void one_head(const Attention<double>& of, std::size_t sample, std::size_t head) {
        const auto& [heads, kv_heads, size, sequence, first_head] = of.shape;
        const std::size_t kv = head * kv_heads / heads;
        const std::size_t q_at = head * size;
        const std::size_t k_at = (heads + kv) * size;
        const std::size_t v_at = (heads + kv_heads + kv) * size;
        const auto in = [&, columns = of.shape.qkv_columns()](std::size_t token, std::size_t c) {
            return (sample * sequence + token) * columns + c;
        };
        const auto out = [&, columns = of.shape.query_columns()](std::size_t token, std::size_t c) {
            return (sample * sequence + token) * columns + c;
        };
        // Of the whole model: token i's probability of seeing j is element (head, i, j).
        std::vector<double> factors((first_head + heads) * sequence * sequence, 1.0);
        if (!of.dropout.empty()) of.dropout[sample].apply(0, std::span(factors));
        const double scale = 1 / std::sqrt(static_cast<double>(size));
        for (std::size_t i = 0; i < sequence; ++i) {
            std::vector<double> p(i + 1), dp(i + 1), dp_size(i + 1);
            const double* factor = &factors[((first_head + head) * sequence + i) * sequence];
            double sum = 0;
            for (std::size_t j = 0; j <= i; ++j) {
                double score = 0;
                for (std::size_t c = 0; c < size; ++c)
                    score += of.qkv[in(i, q_at + c)] * of.qkv[in(j, k_at + c)];
                sum += p[j] = std::exp(score * scale);
            }
            log_sums[(sample * heads + head) * sequence + i] = std::log(sum);
            double mean = 0;
            double mean_size = 0;
            for (std::size_t j = 0; j <= i; ++j) {
                p[j] /= sum;
                for (std::size_t c = 0; c < size; ++c) {
                    const double v = of.qkv[in(j, v_at + c)];
                    const double dy = of.d_output[out(i, q_at + c)];
                    const double kept = p[j] * factor[j];
                    output[out(i, q_at + c)] += kept * v;
                    output_size[out(i, q_at + c)] += kept * std::abs(v);
                    d_qkv[in(j, v_at + c)] += kept * dy;
                    d_qkv_size[in(j, v_at + c)] += kept * std::abs(dy);
                    dp[j] += factor[j] * dy * v;
                    dp_size[j] += factor[j] * std::abs(dy * v);
                }
                mean += p[j] * dp[j];
                mean_size += p[j] * dp_size[j];
            }
            for (std::size_t j = 0; j <= i; ++j)
                for (std::size_t c = 0; c < size; ++c) {
                    const double ds = p[j] * (dp[j] - mean) * scale;
                    const double ds_size = p[j] * (dp_size[j] + mean_size) * scale;
                    const double q = of.qkv[in(i, q_at + c)];
                    const double k = of.qkv[in(j, k_at + c)];
                    d_qkv[in(i, q_at + c)] += ds * k;
                    d_qkv_size[in(i, q_at + c)] += ds_size * std::abs(k);
                    d_qkv[in(j, k_at + c)] += ds * q;
                    d_qkv_size[in(j, k_at + c)] += ds_size * std::abs(q);
                }
        }
    }
};

void expect_all_near(const char* name, const std::vector<double>& actual,
                     const std::vector<double>& expected, double tolerance) {
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i)
        ASSERT_NEAR(actual[i], expected[i], tolerance) << name << " " << i;
}

// One head; grouped queries; heads of an odd size; the later heads of a model that is shared out.
const AttentionShape kSmall[] = {
    {.heads = 1, .kv_heads = 1, .head_size = 1, .sequence = 1},
    {.heads = 2, .kv_heads = 1, .head_size = 2, .sequence = 3},
    {.heads = 4, .kv_heads = 2, .head_size = 3, .sequence = 5},
    {.heads = 3, .kv_heads = 3, .head_size = 2, .sequence = 4, .first_head = 3},
};
// Around one tile of rows, and around two.
const std::size_t kAroundTiles[] = {kAttentionTile - 1, kAttentionTile, kAttentionTile + 1,
                                    2 * kAttentionTile + 1};
AttentionShape of_length(std::size_t sequence) {
    return {.heads = 2, .kv_heads = 1, .head_size = 2, .sequence = sequence, .first_head = 1};
}

class Attending : public testing::TestWithParam<float> {};  // dropout
INSTANTIATE_TEST_SUITE_P(Attention, Attending, testing::Values(0.0f, 0.3f), [](const auto& of) {
    return of.param == 0 ? "without_dropout" : "with_dropout";
});

// Catches a mask that is off by one, a key of another head, a scale that is left out or squared, a
// row of a tile that is taken for another's, and dropout that is drawn at other places than those
// of the whole model. Sums of some hundred terms below 4: 1e-13.
TEST_P(Attending, ForwardAndBackwardAreTheFormulas) {
    std::vector<AttentionShape> shapes(std::begin(kSmall), std::end(kSmall));
    for (const std::size_t sequence : kAroundTiles) shapes.push_back(of_length(sequence));
    for (const AttentionShape& shape : shapes) {
        Attention<double> attention(shape, 2, GetParam());
        attention.forward();
        attention.backward();
        const Formula formula(attention);
        SCOPED_TRACE(shape.sequence);
        expect_all_near("output", attention.output, formula.output, 1e-13);
        expect_all_near("log sum", attention.log_sums, formula.log_sums, 1e-13);
        expect_all_near("gradient", attention.d_qkv, formula.d_qkv, 1e-12);
    }
}

// Independent of the formulas above, which err together with the code if the mathematics is wrong.
TEST_P(Attending, GradientsAreTheDifferences) {
    for (const AttentionShape& shape : kSmall) {
        Attention<double> attention(shape, 2, GetParam());
        attention.forward();
        attention.backward();
        expect_gradient("qkv", attention.qkv, attention.d_qkv, [&] {
            attention.forward();
            return weighted_sum(attention.output, attention.d_output);
        });
    }
}

TEST_P(Attending, GradientsAroundATileAreTheDifferences) {
    for (const std::size_t sequence : kAroundTiles) {
        Attention<double> attention(of_length(sequence), 1, GetParam());
        attention.forward();
        attention.backward();
        const auto loss = [&] {
            attention.forward();
            return weighted_sum(attention.output, attention.d_output);
        };
        // Each 37th element, which meets each of the 8 columns; then all of the last token.
        const std::size_t last = attention.qkv.size() - attention.shape.qkv_columns();
        expect_gradient("qkv", attention.qkv, attention.d_qkv, loss, 0, 37);
        expect_gradient("qkv", attention.qkv, attention.d_qkv, loss, last);
    }
}

// Catches a token that sees a later one, also by a last digit: what is masked counts as zero.
TEST_P(Attending, ALaterTokenChangesNoBitOfAnEarlierOne) {
    const std::size_t sequence = kAttentionTile + 2;
    Attention<float> before(of_length(sequence), 1, GetParam());
    before.forward();
    for (const std::size_t changed :
         {std::size_t{0}, std::size_t{1}, kAttentionTile - 1, kAttentionTile, kAttentionTile + 1}) {
        Attention<float> after(before.shape, 1, GetParam());
        for (float& element : after.rows(after.qkv).row(changed)) element += 1;
        after.forward();
        const std::size_t columns = before.shape.query_columns();
        for (std::size_t i = 0; i < changed * columns; ++i)
            ASSERT_EQ(after.output[i], before.output[i]) << changed << " element " << i;
        const auto of_token = [&](Attention<float>& of) {
            const auto row = of.rows(of.output).row(changed);
            return std::vector(row.begin(), row.end());
        };
        EXPECT_NE(of_token(after), of_token(before)) << changed;
    }
}

// The same of gradients: a token's output has none by a later token.
TEST_P(Attending, NoGradientFlowsToALaterToken) {
    const std::size_t sequence = kAttentionTile + 2;
    Attention<float> attention(of_length(sequence), 1, GetParam());
    attention.forward();
    for (const std::size_t token : {std::size_t{0}, kAttentionTile - 1, kAttentionTile}) {
        std::ranges::fill(attention.d_output, 0.0f);
        for (float& element : attention.rows(attention.d_output).row(token)) element = 1;
        attention.backward();
        for (std::size_t later = token + 1; later < sequence; ++later)
            for (const float gradient : attention.rows(attention.d_qkv).row(later))
                ASSERT_EQ(gradient, 0) << token << " to " << later;
    }
}

// Catches a query that takes another group's key, and gradients of a key that are not summed over
// its queries. The sums are of two numbers: one rounding.
TEST_P(Attending, GroupedQueriesAreRepeatedKeys) {
    Attention<double> grouped({.heads = 6, .kv_heads = 2, .head_size = 3, .sequence = 7}, 2,
                              GetParam());
    Attention<double> repeated({.heads = 6, .kv_heads = 6, .head_size = 3, .sequence = 7}, 2,
                               GetParam());
    repeated.d_output = grouped.d_output;
    // Of a column of the repeated keys and values, that which it repeats.
    const auto source = [&](std::size_t column) {
        if (column < 18) return column;
        const std::size_t kind = (column - 18) / 18;  // key or value
        const std::size_t head = (column - 18) % 18 / 3;
        return 18 + kind * 6 + head / 3 * 3 + column % 3;
    };
    for (std::size_t token = 0; token < grouped.tokens(); ++token)
        for (std::size_t c = 0; c < repeated.shape.qkv_columns(); ++c)
            repeated.rows(repeated.qkv).row(token)[c] =
                grouped.rows(grouped.qkv).row(token)[source(c)];
    for (Attention<double>* each : {&grouped, &repeated}) {
        each->forward();
        each->backward();
    }
    EXPECT_EQ(grouped.output, repeated.output);
    EXPECT_EQ(grouped.log_sums, repeated.log_sums);
    std::vector<double> sums(grouped.d_qkv.size());
    for (std::size_t token = 0; token < grouped.tokens(); ++token)
        for (std::size_t c = 0; c < repeated.shape.qkv_columns(); ++c)
            grouped.rows(sums).row(token)[source(c)] += repeated.rows(repeated.d_qkv).row(token)[c];
    expect_all_near("gradient", grouped.d_qkv, sums, 1e-14);
}

// Catches heads of a tensor-parallel rank that count their dropout from zero. Otherwise the same
// products: within the order of their sums.
TEST_P(Attending, APartOfTheHeadsIsThatPartOfTheWhole) {
    Attention<double> whole({.heads = 4, .kv_heads = 4, .head_size = 2, .sequence = 9}, 2,
                            GetParam());
    whole.forward();
    whole.backward();
    for (const std::size_t part : {0u, 1u}) {
        Attention<double> half(
            {.heads = 2, .kv_heads = 2, .head_size = 2, .sequence = 9, .first_head = 2 * part}, 2,
            GetParam());
        const auto for_each = [&](auto&& use) {
            for (std::size_t token = 0; token < whole.tokens(); ++token)
                for (std::size_t kind = 0; kind < 3; ++kind)
                    for (std::size_t c = 0; c < 4; ++c)
                        use(token, kind * 4 + c, kind * 8 + part * 4 + c);
        };
        for_each([&](std::size_t token, std::size_t mine, std::size_t of_whole) {
            half.rows(half.qkv).row(token)[mine] = whole.rows(whole.qkv).row(token)[of_whole];
            if (mine < 4)
                half.rows(half.d_output).row(token)[mine] =
                    whole.rows(whole.d_output).row(token)[of_whole];
        });
        half.forward();
        half.backward();
        for_each([&](std::size_t token, std::size_t mine, std::size_t of_whole) {
            if (mine < 4) {
                EXPECT_NEAR(half.rows(half.output).row(token)[mine],
                            whole.rows(whole.output).row(token)[of_whole], 1e-14);
            }
            EXPECT_NEAR(half.rows(half.d_qkv).row(token)[mine],
                        whole.rows(whole.d_qkv).row(token)[of_whole], 1e-14);
        });
    }
}

// Catches a sample that sees another one.
TEST_P(Attending, SamplesAreIndependent) {
    Attention<float> two(kSmall[2], 2, GetParam());
    two.forward();
    two.backward();
    for (const std::size_t sample : {0u, 1u}) {
        Attention<float> one(kSmall[2], 1, GetParam());
        if (!one.dropout.empty()) one.dropout = {two.dropout[sample]};
        const auto part = [&](const std::vector<float>& of, std::size_t size) {
            const auto begin = of.begin() + static_cast<std::ptrdiff_t>(sample * size);
            return std::vector(begin, begin + static_cast<std::ptrdiff_t>(size));
        };
        one.qkv = part(two.qkv, one.qkv.size());
        one.d_output = part(two.d_output, one.d_output.size());
        one.forward();
        one.backward();
        EXPECT_EQ(one.output, part(two.output, one.output.size()));
        EXPECT_EQ(one.log_sums, part(two.log_sums, one.log_sums.size()));
        EXPECT_EQ(one.d_qkv, part(two.d_qkv, one.d_qkv.size()));
    }
}

template <typename T>
void expect_near_formula(const AttentionShape& shape, float dropped) {
    Attention<T> low(shape, 1, dropped);
    Attention<double> exact(shape, 1, dropped);
    exact.start_as(low);
    low.forward();
    low.backward();
    const Formula formula(exact);
    const auto near = [&](const char* name, const std::vector<T>& actual,
                          const std::vector<double>& expected, const std::vector<double>& size) {
        constexpr bool kIsRounded = !std::is_same_v<T, Compute<T>>;
        constexpr double kOfType = kIsRounded ? roundoff<T>() : 0;
        constexpr double kOfSums = 300 * 0x1p-24;
        for (std::size_t i = 0; i < actual.size(); ++i)
            ASSERT_NEAR(double{widen(actual[i])}, expected[i],
                        kOfType * (size[i] + std::abs(expected[i])) + kOfSums * size[i])
                << name << " " << i;
    };
    near("output", low.output, formula.output, formula.output_size);
    near("gradient", low.d_qkv, formula.d_qkv, formula.d_qkv_size);
}

// Catches scores, their softmax or sums over tiles and queries that are rounded to 16 bits.
//
// Probabilities, and the gradients of scores, are rounded to the type before they are multiplied: u
// of the sum of sizes. The result is rounded once: u of it. All else is fp32. A score is a sum of
// up to 4 products below 4, times 1 / 2, so that it and its exponential err by less than 10 * 8 u
// of fp32; sums over at most 129 tokens and 2 queries by 130 u each, of which dp, its mean and the
// last one follow one another for a few tokens alone: 300 u.
TEST_P(Attending, LowPrecisionIsRoundedWhereItIsMultiplied) {
    for (const AttentionShape& shape :
         {AttentionShape{.heads = 4, .kv_heads = 2, .head_size = 4, .sequence = 6},
          of_length(kAttentionTile + 1)}) {
        expect_near_formula<float>(shape, GetParam());
        expect_near_formula<Half>(shape, GetParam());
        expect_near_formula<BFloat16>(shape, GetParam());
    }
}

// Scores far beyond what an exponential can hold, and beyond fp16. Catches a softmax without its
// maximum, and scores that are rounded to the type of weights: all attention is on the one key with
// the largest score, whose value comes out as it went in.
template <typename T>
void expect_stable() {
    Attention<T> attention({.heads = 1, .kv_heads = 1, .head_size = 4, .sequence = 3}, 1);
    const auto rows = attention.rows(attention.qkv);
    for (std::size_t token = 0; token < 3; ++token)
        for (std::size_t c = 0; c < 4; ++c) {
            rows.row(token)[c] = narrow<T>(200);
            rows.row(token)[4 + c] = narrow<T>(token == 1 ? 200.0f : -200.0f);
        }
    attention.forward();
    attention.backward();
    for (std::size_t token = 0; token < 3; ++token)
        for (std::size_t c = 0; c < 4; ++c) {
            EXPECT_EQ(widen(attention.output[token * 4 + c]),
                      widen(rows.row(std::min<std::size_t>(token, 1))[8 + c]));
            EXPECT_EQ(widen(attention.rows(attention.d_qkv).row(token)[c]), 0);
            EXPECT_EQ(widen(attention.rows(attention.d_qkv).row(token)[4 + c]), 0);
        }
}
TEST(AttentionOfLargeScores, IsAllOnTheLargest) {
    expect_stable<float>();
    expect_stable<double>();
    expect_stable<Half>();
    expect_stable<BFloat16>();
}

// The bytes that the planner counts. Catches scores of sequence x sequence, and what is left.
TEST(AttentionMemory, IsOfATileAndOneHead) {
    for (const std::size_t sequence : {std::size_t{5}, kAttentionTile, 3 * kAttentionTile}) {
        const std::size_t tile = std::min(sequence, kAttentionTile) * sequence;
        const auto peak_of = [](auto& attention, auto&& pass) {
            attention.space.ledger().enter(memory::Phase::forward);
            pass();
            EXPECT_EQ(attention.space.ledger().live_bytes(), 0u);
            EXPECT_EQ(attention.space.ledger().peak_bytes(memory::Category::activation),
                      attention.space.ledger().peak_bytes());
            return attention.space.ledger().peak_bytes();
        };
        const AttentionShape shape{.heads = 2, .kv_heads = 1, .head_size = 4, .sequence = sequence};
        Attention<float> fp32(shape, 2);
        EXPECT_EQ(peak_of(fp32, [&] { fp32.forward(); }), 4 * tile);
        EXPECT_EQ(peak_of(fp32, [&] { fp32.backward(); }), 4 * (2 * tile + (1 + 2 * 4) * sequence));
        Attention<BFloat16> bf16(shape, 2);
        EXPECT_EQ(peak_of(bf16, [&] { bf16.forward(); }), (4 + 2) * tile);
        EXPECT_EQ(peak_of(bf16, [&] { bf16.backward(); }),
                  (4 + 2) * 2 * tile + 4 * (1 + 2 * 4) * sequence);
    }
}

constexpr double kBase = 10000;
const AttentionShape kRotated{.heads = 3, .kv_heads = 2, .head_size = 6, .sequence = 5};

// Catches an angle of another position, pair or base, pairs of neighbours in place of halves, keys
// that are not turned, values that are, and positions that go on in the next sample.
TEST(Rotation, TurnsEachPairOfQueriesAndKeys) {
    Attention<double> attention(kRotated, 2);
    const std::vector<double> before = attention.qkv;
    rotate<double>(kRotated, kBase, Rotation::forward, attention.rows(attention.qkv));
    const std::size_t columns = kRotated.qkv_columns();
    for (std::size_t token = 0; token < 10; ++token)
        for (std::size_t head = 0; head < 3 + 2 + 2; ++head)
            for (std::size_t j = 0; j < 3; ++j) {
                const auto position = static_cast<double>(token % 5);
                const double angle =
                    head < 5 ? position / std::pow(kBase, static_cast<double>(j) / 3) : 0;
                const std::size_t x = token * columns + head * 6 + j;
                EXPECT_NEAR(attention.qkv[x],
                            before[x] * std::cos(angle) - before[x + 3] * std::sin(angle), 1e-14);
                EXPECT_NEAR(attention.qkv[x + 3],
                            before[x] * std::sin(angle) + before[x + 3] * std::cos(angle), 1e-14);
            }
}

// What rotary positions are for: a score depends on the distance of two tokens alone.
TEST(Rotation, ScoresDependOnDistancesAlone) {
    const AttentionShape shape{.heads = 1, .kv_heads = 1, .head_size = 8, .sequence = 12};
    Attention<double> attention(shape, 1);
    const auto rows = attention.rows(attention.qkv);
    for (std::size_t token = 1; token < 12; ++token)
        std::ranges::copy(rows.row(0), rows.row(token).begin());
    rotate<double>(shape, kBase, Rotation::forward, rows);
    const auto score = [&](std::size_t query, std::size_t key) {
        double sum = 0;
        for (std::size_t c = 0; c < 8; ++c) sum += rows.row(query)[c] * rows.row(key)[8 + c];
        return sum;
    };
    for (std::size_t distance = 0; distance < 12; ++distance)
        for (std::size_t key = 0; key + distance < 12; ++key)
            EXPECT_NEAR(score(key + distance, key), score(distance, 0), 1e-13);
    EXPECT_GT(std::abs(score(1, 0) - score(0, 0)), 0.01);
}

// Two turns of a rounding each, of elements below 2 that turn into elements below 2 sqrt 2: 2 (2
// sqrt 2) u of the type, and a few u of fp32.
template <typename T>
void expect_undone() {
    Attention<T> attention(kRotated, 2);
    const std::vector<T> before = attention.qkv;
    rotate<T>(kRotated, kBase, Rotation::forward, attention.rows(attention.qkv));
    EXPECT_NE(widened<T>(attention.qkv), widened<T>(before));
    rotate<T>(kRotated, kBase, Rotation::backward, attention.rows(attention.qkv));
    for (std::size_t i = 0; i < before.size(); ++i)
        EXPECT_NEAR(double{widen(attention.qkv[i])}, double{widen(before[i])},
                    4 * std::numbers::sqrt2 * roundoff<T>() + 20 * roundoff<Compute<T>>());
}
TEST(Rotation, BackwardUndoesForward) {
    expect_undone<float>();
    expect_undone<double>();
    expect_undone<Half>();
    expect_undone<BFloat16>();
}

// A rotation's transpose is its inverse, and gradients are turned by the transpose.
TEST(Rotation, GradientsAreTheDifferences) {
    Attention<double> attention(kRotated, 2);
    const std::vector<double> before = attention.qkv;
    std::vector<double> x = before;
    const std::vector<double> factors = numbers(x.size(), 9);
    std::vector<double> gradient = factors;
    rotate<double>(kRotated, kBase, Rotation::backward, attention.rows(gradient));
    expect_gradient("qkv", x, gradient, [&] {
        std::vector<double> turned = x;
        rotate<double>(kRotated, kBase, Rotation::forward, attention.rows(turned));
        return weighted_sum(turned, factors);
    });
}

}  // namespace
}  // namespace zeroproof::reference
