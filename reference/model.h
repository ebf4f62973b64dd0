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
    // Of a parameter that is cut over a tensor-parallel group, as against one of which each rank of
    // the group has a copy.
    bool is_shard = false;
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

// What a forward pass is for.
enum class Pass {
    train,      // backward follows
    evaluate,   // nothing follows
    recompute,  // again within backward, for activations that were not kept
};

// Units [begin, end), whose activations are not kept but for the input of the first: the
// checkpoint.
struct Segment {
    std::size_t begin;
    std::size_t end;
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

    // Activation checkpointing (Chen et al., Training Deep Nets with Sublinear Memory Cost): what
    // is recomputed in backward, by place. Before the first unit of a segment is, its input is
    // restored.
    virtual std::span<const Segment> recomputed() const { return {}; }
    virtual void restore(std::size_t segment) { static_cast<void>(segment); }

    // `weights` holds one tensor for each parameter of the unit.
    virtual void forward(std::size_t unit, std::span<const ConstTensor> weights, Pass pass) = 0;
    // Adds the gradient of this use of each trainable parameter, times `loss_scale`, to
    // `gradients`, which starts at zero. Frozen parameters have an empty tensor there.
    virtual void backward(std::size_t unit, std::span<const ConstTensor> weights,
                          std::span<const Tensor> gradients, float loss_scale) = 0;
};

}  // namespace zeroproof::reference
