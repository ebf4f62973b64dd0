// What the reference refuses, before any work.
#include "reference/options.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace zeroproof::reference {
namespace {

class Described : public Model {
  public:
    std::vector<Parameter> described{{"a", 3}, {"frozen", 2, -1, false}};
    std::vector<Unit> used{{"first", {0, 1}}};

    const std::vector<Parameter>& parameters() const override { return described; }
    const std::vector<Unit>& units() const override { return used; }
    void initial_weights(std::size_t, std::size_t, std::span<float>) const override {}
    void forward(std::size_t, std::span<const ConstTensor>, Pass) override {}
    void backward(std::size_t, std::span<const ConstTensor>, std::span<const Tensor>,
                  float) override {}
};

TEST(Options, EveryMistakeIsUnsupportedAndNamed) {
    const struct {
        const char* named;
        std::function<void(Options&, Described&)> spoil;
    } rows[] = {
        {"stage 4", [](Options& o, Described&) { o.stage = 4; }},
        {"stage -1", [](Options& o, Described&) { o.stage = -1; }},
        {"0 micro-steps", [](Options& o, Described&) { o.micro_steps = 0; }},
        {"bucket of 0", [](Options& o, Described&) { o.bucket_elements = 0; }},
        {"bucket of 18446744073709551615",
         [](Options& o, Described&) {
             o.bucket_elements = std::numeric_limits<std::size_t>::max();
         }},
        {"clip norm -1", [](Options& o, Described&) { o.clip_norm = -1; }},
        {"clip norm", [](Options& o, Described&) { o.clip_norm = std::nan(""); }},
        {"loss scale", [](Options& o, Described&) { o.loss_scale.minimum = 0; }},
        {"loss scale", [](Options& o, Described&) { o.loss_scale.initial = 0.5f; }},
        {"loss scale", [](Options& o, Described&) { o.loss_scale.factor = 1; }},
        {"loss scale", [](Options& o, Described&) { o.loss_scale.growth_interval = 0; }},
        {"loss scale", [](Options& o, Described&) { o.loss_scale.hysteresis = 0; }},
        {"named 'a'", [](Options&, Described& m) { m.described[1].name = "a"; }},
        {"group 1, of 1", [](Options&, Described& m) { m.described[0].group = 1; }},
        {"group -1", [](Options&, Described& m) { m.described[0].group = -1; }},
        {"of 0", [](Options& o, Described&) { o.groups.clear(); }},
        {"parameter 2, of 2", [](Options&, Described& m) { m.used[0].parameters = {2}; }},
    };
    for (const auto& [named, spoil] : rows) {
        Options options;
        options.groups.emplace_back();
        Described model;
        EXPECT_NO_THROW(check(options, model));
        spoil(options, model);
        try {
            check(options, model);
            ADD_FAILURE() << "accepted: " << named;
        } catch (const Unsupported& error) {
            EXPECT_NE(std::string(error.what()).find(named), std::string::npos) << error.what();
        }
    }
}

TEST(Options, EveryStageIsSupportedAndPrecisionsHaveTheirTypes) {
    Described model;
    for (int stage = 0; stage <= 3; ++stage) {
        Options options;
        options.groups.emplace_back();
        options.stage = stage;
        EXPECT_NO_THROW(check(options, model));
    }
    EXPECT_EQ(weight_type(Precision::fp32), DType::fp32);
    EXPECT_EQ(weight_type(Precision::bf16), DType::bf16);
    EXPECT_EQ(weight_type(Precision::fp16), DType::fp16);
    EXPECT_THROW((void)weight_type(static_cast<Precision>(9)), std::logic_error);
}

}  // namespace
}  // namespace zeroproof::reference
