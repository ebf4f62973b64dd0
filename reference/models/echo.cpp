#include "reference/models/echo.h"

#include "reference/kernels.h"

namespace zeroproof::reference {

void EchoModel::forward(std::size_t unit, std::span<const ConstTensor> weights, Pass pass) {
    echo(unit, weights);
    DotModel::forward(unit, weights, pass);
}

void EchoModel::backward(std::size_t unit, std::span<const ConstTensor> weights,
                         std::span<const Tensor> gradients, float loss_scale) {
    echo(unit, weights);
    DotModel::backward(unit, weights, gradients, loss_scale);
}

void EchoModel::echo(std::size_t unit, std::span<const ConstTensor> weights) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
        Output output{unit, units()[unit].parameters[i], std::vector<float>(weights[i].elements)};
        widen_into(output.weights, weights[i]);
        outputs_.push_back(std::move(output));
    }
}

}  // namespace zeroproof::reference
