#include "reference/models/dot.h"

#include "reference/kernels.h"

namespace zeroproof::reference {

void DotModel::forward(std::size_t unit, std::span<const ConstTensor> weights, Pass) {
    if (unit == 0) loss_ = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        std::vector<float> g(weights[i].elements);
        if (!terms_.terms(unit, units_[unit].parameters[i], g)) continue;
        std::vector<float> p(weights[i].elements);
        widen_into(p, weights[i]);
        for (std::size_t e = 0; e < p.size(); ++e) loss_ += double{p[e]} * double{g[e]};
    }
}

void DotModel::backward(std::size_t unit, std::span<const ConstTensor>,
                        std::span<const Tensor> gradients, float loss_scale) {
    for (std::size_t i = 0; i < gradients.size(); ++i) {
        const std::size_t parameter = units_[unit].parameters[i];
        if (!parameters_[parameter].trainable) continue;
        std::vector<float> g(gradients[i].elements);
        if (!terms_.terms(unit, parameter, g)) continue;
        for (float& value : g) value *= loss_scale;
        add_into(gradients[i], g);
    }
}

}  // namespace zeroproof::reference
