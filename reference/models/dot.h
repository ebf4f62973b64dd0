// A model whose gradient is known: loss = sum of p * g over the elements of each use of each
// parameter, so that the gradient of that use is g, whatever trains it.
#pragma once

#include <vector>

#include "reference/model.h"

namespace zeroproof::reference {

// Where the g come from, and the weights to start with.
class LinearTerms {
  public:
    virtual ~LinearTerms() = default;
    virtual void initial_weights(std::size_t parameter, std::size_t begin,
                                 std::span<float> values) const = 0;
    // The g of this unit's use of the parameter, now. False if it is not used: no term at all.
    virtual bool terms(std::size_t unit, std::size_t parameter, std::span<float> g) const = 0;
};

class DotModel : public Model {
  public:
    // `terms` outlives the model.
    DotModel(std::vector<Parameter> parameters, std::vector<Unit> units, const LinearTerms& terms)
        : parameters_(std::move(parameters)), units_(std::move(units)), terms_(terms) {}

    const std::vector<Parameter>& parameters() const override { return parameters_; }
    const std::vector<Unit>& units() const override { return units_; }
    void initial_weights(std::size_t parameter, std::size_t begin,
                         std::span<float> values) const override {
        terms_.initial_weights(parameter, begin, values);
    }

    void forward(std::size_t unit, std::span<const ConstTensor> weights, Pass pass) override;
    void backward(std::size_t unit, std::span<const ConstTensor> weights,
                  std::span<const Tensor> gradients, float loss_scale) override;
    // Of the last forward pass.
    double loss() const { return loss_; }

  private:
    std::vector<Parameter> parameters_;
    std::vector<Unit> units_;
    const LinearTerms& terms_;
    double loss_ = 0;
};

}  // namespace zeroproof::reference
