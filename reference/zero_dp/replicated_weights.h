// Whole weights on every rank: plain data parallelism and stages 1 and 2.
#pragma once

#include <span>
#include <vector>

#include "reference/flat_parameters.h"
#include "reference/stage.h"

namespace zeroproof::reference {

class ReplicatedWeights {
  public:
    // `flat` holds the trainable parameters and outlives this.
    ReplicatedWeights(const Setup& setup, const FlatParameters& flat);

    std::vector<ConstTensor> of_unit(std::size_t unit);
    Tensor of_slice(const Slice& slice);
    void read(std::size_t parameter, std::span<float> values);
    void write(std::size_t parameter, std::span<const float> values);
    // Each rank's new part of each bucket goes to all others, in place.
    void all_gather();

  private:
    Tensor of_parameter(std::size_t parameter);

    Setup setup_;
    const FlatParameters& flat_;
    FlatParameters frozen_flat_;
    memory::Buffer trainable_;
    memory::Buffer frozen_;
};

}  // namespace zeroproof::reference
