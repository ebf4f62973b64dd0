// The whole model's gradients against differences in double precision, and what must not change
// them.
#include "reference/models/transformer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "collectives/test_support.h"
#include "reference/options.h"

namespace zeroproof::reference {
namespace {

TransformerShape tiny(TransformerFamily family) {
    return {.family = family,
            .layers = 2,
            .hidden = 12,
            .heads = 6,
            .kv_heads = family == TransformerFamily::gpt2 ? 6u : 2u,
            .feed_forward = 20,
            .vocabulary = 11,
            .sequence = 5,
            .dropout = 0};
}

// A model with its weights and gradients, without any stage.
template <typename T>
class Whole {
  public:
    Whole(const TransformerShape& shape, const TransformerOptions& options)
        : model_(shape, options, space_) {
        for (std::size_t p = 0; p < model_.parameters().size(); ++p) {
            const std::size_t elements = model_.parameters()[p].elements;
            std::vector<float> start(elements);
            model_.initial_weights(p, 0, start);
            std::vector<T>& weight = weights_.emplace_back(elements);
            // Larger than a start is, so that no gradient is small; norms not all 1.
            for (std::size_t e = 0; e < elements; ++e)
                weight[e] = narrow<T>(
                    static_cast<Compute<T>>((start[e] == 1 ? 1 : 10 * start[e]) +
                                            0.1f * (static_cast<float>((e * 7 + p) % 5) - 2)));
            gradients_.emplace_back(elements);
        }
        const std::size_t tokens = options.samples * shape.sequence;
        for (std::size_t i = 0; i < tokens; ++i) {
            tokens_.push_back(static_cast<std::int32_t>(i * 7 % shape.vocabulary));
            targets_.push_back(static_cast<std::int32_t>((i * 5 + 3) % shape.vocabulary));
        }
    }

    std::vector<T>& weight(std::size_t p) { return weights_[p]; }
    const std::vector<T>& gradient(std::size_t p) const { return gradients_[p]; }
    std::size_t parameters() const { return weights_.size(); }
    Transformer<T>& model() { return model_; }
    memory::Space& space() { return space_; }

    double forward(Pass pass = Pass::train) {
        model_.set_batch(tokens_, targets_, 3);
        for (std::size_t u = 0; u < model_.units().size(); ++u) forward_unit(u, pass);
        return model_.loss();
    }
    void backward(float loss_scale = 1) {
        for (auto& gradient : gradients_) std::ranges::fill(gradient, T{});
        const auto segments = model_.recomputed();
        std::size_t left = segments.size();
        for (std::size_t u = model_.units().size(); u-- > 0;) {
            if (left > 0 && segments[left - 1].end == u + 1) {
                model_.restore(--left);
                for (std::size_t r = segments[left].begin; r <= u; ++r)
                    forward_unit(r, Pass::recompute);
            }
            std::vector<Tensor> gradients;
            std::vector<std::vector<T>> of_use;
            for (const std::size_t p : model_.units()[u].parameters)
                of_use.emplace_back(weights_[p].size());
            for (auto& g : of_use)
                gradients.push_back(
                    {dtype_of<T>(), reinterpret_cast<std::byte*>(g.data()), g.size()});
            model_.backward(u, tensors(u), gradients, loss_scale);
            for (std::size_t i = 0; i < of_use.size(); ++i) {
                auto& sum = gradients_[model_.units()[u].parameters[i]];
                for (std::size_t e = 0; e < sum.size(); ++e)
                    sum[e] = narrow<T>(widen(sum[e]) + widen(of_use[i][e]));
            }
        }
    }

  private:
    std::vector<ConstTensor> tensors(std::size_t unit) const {
        std::vector<ConstTensor> all;
        for (const std::size_t p : model_.units()[unit].parameters)
            all.push_back({dtype_of<T>(), reinterpret_cast<const std::byte*>(weights_[p].data()),
                           weights_[p].size()});
        return all;
    }
    void forward_unit(std::size_t unit, Pass pass) { model_.forward(unit, tensors(unit), pass); }

    memory::Space space_{"device"};
    Transformer<T> model_;
    std::vector<std::vector<T>> weights_;
    std::vector<std::vector<T>> gradients_;
    std::vector<std::int32_t> tokens_;
    std::vector<std::int32_t> targets_;
};

class EachFamily : public testing::TestWithParam<std::tuple<TransformerFamily, float>> {
  protected:
    TransformerShape shape() const {
        TransformerShape shape = tiny(std::get<0>(GetParam()));
        shape.dropout = std::get<1>(GetParam());
        return shape;
    }
};

INSTANTIATE_TEST_SUITE_P(Transformer, EachFamily,
                         testing::Combine(testing::Values(TransformerFamily::gpt2,
                                                          TransformerFamily::llama),
                                          testing::Values(0.0f, 0.25f)));

// Central differences err by h^2 / 6 times the third derivative, some hundreds here, and by
// rounding, eps |f| / h: with h = 1e-5 about 1e-8.
TEST_P(EachFamily, GradientsAreTheDifferences) {
    Whole<double> whole(shape(), {.samples = 2});
    whole.forward();
    whole.backward();
    constexpr double h = 1e-5;
    for (std::size_t p = 0; p < whole.parameters(); ++p)
        for (std::size_t e = 0; e < whole.weight(p).size(); ++e) {
            double& weight = whole.weight(p)[e];
            const double before = weight;
            weight = before + h;
            const double above = whole.forward();
            weight = before - h;
            const double below = whole.forward();
            weight = before;
            const double gradient = whole.gradient(p)[e];
            ASSERT_NEAR(gradient, (above - below) / (2 * h), 1e-7 * (1 + std::abs(gradient)))
                << whole.model().parameters()[p].name << " element " << e;
        }
}

TEST_P(EachFamily, RecomputingChangesNoBit) {
    Whole<float> kept(shape(), {.samples = 2});
    const double loss = kept.forward();
    kept.backward();
    for (const std::size_t blocks : {1u, 2u, 3u})
        for (const bool contiguous : {false, true}) {
            memory::Space host("host");
            for (memory::Space* place : {static_cast<memory::Space*>(nullptr), &host}) {
                Whole<float> again(shape(),
                                   {.samples = 2,
                                    .blocks_per_checkpoint = blocks,
                                    .checkpoints = {.host = place, .contiguous = contiguous}});
                EXPECT_EQ(again.forward(), loss);
                again.backward();
                for (std::size_t p = 0; p < kept.parameters(); ++p)
                    EXPECT_EQ(again.gradient(p), kept.gradient(p)) << p;
            }
        }
}

TEST_P(EachFamily, NothingIsLeftBehind) {
    Whole<float> whole(shape(), {.samples = 2, .blocks_per_checkpoint = 1});
    whole.forward();
    EXPECT_GT(whole.space().ledger().live_bytes(), 0u);
    whole.backward();
    EXPECT_EQ(whole.space().ledger().live_bytes(), 0u);
    whole.forward(Pass::evaluate);
    EXPECT_EQ(whole.space().ledger().live_bytes(), 0u);
}

TEST_P(EachFamily, LowPrecisionIsNear) {
    Whole<float> exact(shape(), {.samples = 2});
    Whole<BFloat16> bf16(shape(), {.samples = 2});
    Whole<Half> fp16(shape(), {.samples = 2});
    for (std::size_t p = 0; p < exact.parameters(); ++p)
        for (std::size_t e = 0; e < exact.weight(p).size(); ++e) {
            // All start from what bf16 can hold, which fp16 can too.
            bf16.weight(p)[e] = memory::to_bfloat16(exact.weight(p)[e]);
            exact.weight(p)[e] = to_float(bf16.weight(p)[e]);
            fp16.weight(p)[e] = memory::to_half(exact.weight(p)[e]);
        }
    const double loss = exact.forward();
    EXPECT_NEAR(bf16.forward(), loss, 0.05 * loss);
    EXPECT_NEAR(fp16.forward(), loss, 0.01 * loss);
    exact.backward();
    bf16.backward();
    fp16.backward(64);
    const auto error = [&](auto& other, float scale) {
        double difference = 0;
        double size = 0;
        for (std::size_t p = 0; p < exact.parameters(); ++p)
            for (std::size_t e = 0; e < exact.gradient(p).size(); ++e) {
                const double g = double{exact.gradient(p)[e]};
                const double d = double{widen(other.gradient(p)[e]) / scale} - g;
                difference += d * d;
                size += g * g;
            }
        return std::sqrt(difference / size);
    };
    EXPECT_LT(error(bf16, 1), 0.1);
    EXPECT_LT(error(fp16, 64), 0.02);
}

// Cut over a group, the model is the same function: loss and gradients within what the order of the
// sums can change.
TEST_P(EachFamily, TensorParallelIsTheSame) {
    Whole<double> whole(shape(), {.samples = 2});
    const double loss = whole.forward();
    whole.backward();
    for (const std::size_t blocks : {0u, 1u})
        collectives::run_ranks(2, [&](collectives::Communicator& world) {
            TransformerOptions options{.samples = 2, .blocks_per_checkpoint = blocks};
            options.tensor_parallel = &world;
            options.checkpoints.partition_over = &world;
            Whole<double> part(shape(), options);
            const ShardPlace place{static_cast<std::size_t>(world.rank()), 2};
            std::size_t p = 0;
            const auto for_each = [&](auto&& use) {
                p = 0;
                for (const TransformerUnit& unit : transformer_units(shape(), place))
                    for (const TransformerParameter& parameter : unit.parameters) {
                        std::size_t local = 0;
                        for (const auto& cut : parameter.row_cuts)
                            for (std::size_t r = cut.begin; r < cut.end; ++r)
                                for (std::size_t c = parameter.column_cut.begin;
                                     c < parameter.column_cut.end; ++c)
                                    use(local++, r * parameter.columns + c);
                        ++p;
                    }
            };
            for_each([&](std::size_t local, std::size_t global) {
                part.weight(p)[local] = whole.weight(p)[global];
            });
            EXPECT_NEAR(part.forward(), loss, 1e-12);
            part.backward();
            for_each([&](std::size_t local, std::size_t global) {
                const double gradient = whole.gradient(p)[global];
                EXPECT_NEAR(part.gradient(p)[local], gradient, 1e-12 * (1 + std::abs(gradient)));
            });
        });
}

TEST(Transformer, SizesThatDoNotDivideAreRefused) {
    memory::Space space("device");
    TransformerShape shape = tiny(TransformerFamily::gpt2);
    shape.heads = 5;
    EXPECT_THROW(Transformer<float>(shape, {}, space), Unsupported);
    shape = tiny(TransformerFamily::llama);
    shape.kv_heads = 4;
    EXPECT_THROW(Transformer<float>(shape, {}, space), Unsupported);
}

}  // namespace
}  // namespace zeroproof::reference
