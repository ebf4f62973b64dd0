#include "reference/models/dot.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "reference/models/echo.h"

namespace zeroproof::reference {
namespace {

// g is 3, 4 for parameter 0 and there is no term of parameter 1.
class Terms : public LinearTerms {
  public:
    void initial_weights(std::size_t, std::size_t, std::span<float>) const override {}
    bool terms(std::size_t, std::size_t parameter, std::span<float> g) const override {
        if (parameter == 1) return false;
        std::ranges::copy(std::vector<float>{3, 4}, g.begin());
        return true;
    }
};

Tensor tensor(std::vector<float>& values) {
    return {DType::fp32, reinterpret_cast<std::byte*>(values.data()), values.size()};
}

TEST(Models, LossIsTheSumOfPTimesGAndGIsTheGradientAndEchoShowsTheWeights) {
    const Terms terms;
    EchoModel model({{"used", 2}, {"unused", 1}}, {{"unit", {0, 1}}}, terms);
    std::vector<float> p{10, 100};
    std::vector<float> unused{5};
    for (int pass = 0; pass < 2; ++pass) {
        model.forward(0, std::vector<ConstTensor>{tensor(p), tensor(unused)}, Pass::train);
        EXPECT_EQ(model.loss(), 3 * 10 + 4 * 100);
    }
    auto outputs = model.take_outputs();
    ASSERT_EQ(outputs.size(), 4u);
    EXPECT_EQ(outputs[2].weights, p);
    EXPECT_EQ(outputs[3].weights, unused);

    // Added, times the loss scale.
    std::vector<float> gradient{1, 0};
    std::vector<float> no_gradient{0};
    model.backward(0, std::vector<ConstTensor>{tensor(p), tensor(unused)},
                   std::vector<Tensor>{tensor(gradient), tensor(no_gradient)}, 2);
    EXPECT_EQ(gradient, (std::vector<float>{1 + 2 * 3, 2 * 4}));
    EXPECT_EQ(no_gradient, std::vector<float>{0});
    EXPECT_EQ(model.take_outputs().size(), 2u);
}

}  // namespace
}  // namespace zeroproof::reference
