// Every tensor of a short run, for a comparison with another implementation, number by number.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/train/train_record.h"
#include "reference/models/transformer_shape.h"
#include "reference/stage.h"

namespace zeroproof::harness {

// A file in the format of safetensors, of
//   weight.P         before the first step, in fp32: in 16-bit precisions the masters
//   tokens, targets  int32, [steps, samples of a step, sequence]
//   gradient.S.P     of step S, from 1: averaged, unscaled, before clipping
//   after.S.P        the weights that the ranks compute with after step S, widened
//   master.S.P       their masters, in 16-bit precisions alone
//   loss, norm       fp64, [steps]; the norm is of the gradient before clipping
// where P is a parameter, [rows, columns]. The header's notes "model" and "training" are JSON.
//
// All ranks fill it at the same time, each with the elements that it owns and the samples that it
// takes, into storage that is there from the beginning: no two write to the same place.
class TensorLog {
  public:
    // Throws scenarios::BadInput for a plan whose tensors are not to be had so.
    explicit TensorLog(const TrainPlan& plan);

    void start(reference::Stage& stage);
    // Samples of the step from `first` on.
    void batch(std::int64_t step, std::size_t first, std::span<const std::int32_t> tokens,
               std::span<const std::int32_t> targets);
    // Once the gradient is reduced, before the step.
    void gradient(std::int64_t step, reference::Stage& stage);
    void after(const StepResult& result, reference::Stage& stage);

    // The file, once all ranks have ended.
    std::string bytes() const;

  private:
    // Of all parameters one after the other, for each step: NaN until a rank has filled it.
    using Values = std::vector<float>;

    // Where the slice lies in a step's values, with the values that it has there.
    std::span<float> place(Values& values, std::size_t step, const reference::Slice& slice) const;

    TrainPlan plan_;
    std::vector<reference::TransformerParameter> parameters_;
    std::vector<std::size_t> begins_;  // by parameter, in a step's values
    std::size_t elements_ = 0;         // of all parameters
    bool keeps_masters_;
    std::vector<std::int32_t> tokens_;
    std::vector<std::int32_t> targets_;
    Values start_;
    Values gradients_;
    Values after_;
    Values masters_;
    std::vector<double> loss_;
    std::vector<double> norm_;
};

}  // namespace zeroproof::harness
