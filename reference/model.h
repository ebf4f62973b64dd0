// What the reference trains: parameters, used by units in an order.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "memory/dtype.h"

namespace zeroproof::reference {

using memory::DType;

struct Parameter {
    std::string name;
    std::size_t elements = 0;
    int group = 0;  // of Options::groups; frozen parameters have none
    bool trainable = true;
};

// A layer, or any part of a model whose weights are needed at one time. A parameter in several
// units is tied; a unit that runs several times stands in the order several times.
struct Unit {
    std::string name;
    std::vector<std::size_t> parameters;
};

// Elements that somebody else owns.
struct ConstTensor {
    DType type;
    const std::byte* data;
    std::size_t elements;
};
struct Tensor {
    DType type;
    std::byte* data;
    std::size_t elements;
    operator ConstTensor() const { return {type, data, elements}; }
};

class Model {
  public:
    virtual ~Model() = default;

    virtual const std::vector<Parameter>& parameters() const = 0;
    // In the order in which the forward pass uses them.
    virtual const std::vector<Unit>& units() const = 0;
    // Elements [begin, begin + values.size()) of a parameter, before any training.
    virtual void initial_weights(std::size_t parameter, std::size_t begin,
                                 std::span<float> values) const = 0;

    // `weights` holds one tensor for each parameter of the unit.
    virtual void forward(std::size_t unit, std::span<const ConstTensor> weights) = 0;
    // Adds the gradient of this use of each trainable parameter, times `loss_scale`, to
    // `gradients`, which starts at zero. Frozen parameters have an empty tensor there.
    virtual void backward(std::size_t unit, std::span<const ConstTensor> weights,
                          std::span<const Tensor> gradients, float loss_scale) = 0;
};

}  // namespace zeroproof::reference
