// The case's model, as an engine drives it.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/metered.h"
#include "harness/plugin/zeroproof.h"
#include "suites/conformance/evidence.h"
#include "suites/conformance/gradients.h"

namespace zeroproof::harness {

// Throws PluginFault. Of the thread of one rank.
class PluginModel {
  public:
    // All outlive it.
    PluginModel(const suites::Case& c, int ranks, int rank, const collectives::Meter& meter,
                suites::RankEvidence& evidence)
        : case_(c), gradients_(c, ranks), rank_(rank), meter_(meter), evidence_(evidence) {}

    void initial_weights(std::size_t parameter, std::size_t begin, std::size_t elements,
                         float* values) const;
    void forward(int action, std::size_t unit, const zeroproof_tensor* weights);
    void backward(int action, std::size_t micro_step, std::size_t unit,
                  const zeroproof_tensor* weights, const zeroproof_tensor* gradients,
                  float loss_scale, std::int32_t* used);

  private:
    // What both passes show of themselves.
    void observe(int action, bool backward, std::size_t unit, const zeroproof_tensor* weights);

    const suites::Case& case_;
    suites::Gradients gradients_;
    int rank_;
    const collectives::Meter& meter_;
    suites::RankEvidence& evidence_;
};

}  // namespace zeroproof::harness
