// A model whose output is its weights: each pass shows which weights were in use.
#pragma once

#include <utility>

#include "reference/models/dot.h"

namespace zeroproof::reference {

// Its loss and gradient are those of the dot model: loss = sum of output * g.
class EchoModel : public DotModel {
  public:
    struct Output {
        std::size_t unit;
        std::size_t parameter;
        std::vector<float> weights;
    };

    using DotModel::DotModel;
    void forward(std::size_t unit, std::span<const ConstTensor> weights, Pass pass) override;
    // As forward does, also shows the weights that backward sees.
    void backward(std::size_t unit, std::span<const ConstTensor> weights,
                  std::span<const Tensor> gradients, float loss_scale) override;

    // What the passes since the last call have used, in order.
    std::vector<Output> take_outputs() { return std::exchange(outputs_, {}); }

  private:
    void echo(std::size_t unit, std::span<const ConstTensor> weights);
    std::vector<Output> outputs_;
};

}  // namespace zeroproof::reference
