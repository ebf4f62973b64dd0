#include "reference/optimizer/adam.h"

#include <algorithm>
#include <cmath>

#include "reference/kernels.h"

namespace zeroproof::reference {

namespace {

// Gradients are widened this many at a time, so that no fp32 copy of them is ever kept.
constexpr std::size_t kBlock = 256;

}  // namespace

void adam_step(const ParameterGroup& group, std::int64_t step, GradientScaling scaling,
               ConstTensor gradient, std::span<float> master, std::span<float> momentum,
               std::span<float> variance) {
    const float beta1 = group.beta1;
    const float beta2 = group.beta2;
    const auto t = static_cast<double>(step);
    const auto correction1 = static_cast<float>(1 - std::pow(double{beta1}, t));
    const auto correction2 = static_cast<float>(1 - std::pow(double{beta2}, t));
    const float l2 = group.decay == Decay::l2 ? group.weight_decay : 0.0f;
    const float decoupled = group.decay == Decay::decoupled ? group.weight_decay : 0.0f;

    float block[kBlock];
    for (std::size_t first = 0; first < gradient.elements; first += kBlock) {
        const std::size_t length = std::min(kBlock, gradient.elements - first);
        widen_into({block, length},
                   {gradient.type, gradient.data + first * memory::size_of(gradient.type), length});
        for (std::size_t i = 0; i < length; ++i) {
            float& p = master[first + i];
            float& m = momentum[first + i];
            float& v = variance[first + i];
            const float g = block[i] / scaling.divisor * scaling.clip + l2 * p;
            m = beta1 * m + (1 - beta1) * g;
            v = beta2 * v + (1 - beta2) * g * g;
            const float m_hat = m / correction1;
            const float v_hat = v / correction2;
            p -= group.learning_rate * (m_hat / (std::sqrt(v_hat) + group.epsilon) + decoupled * p);
        }
    }
}

}  // namespace zeroproof::reference
