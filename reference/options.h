// How the reference trains.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "reference/model.h"

namespace zeroproof::reference {

// Asked for something that the reference does not do. Thrown before any work.
class Unsupported : public std::invalid_argument {
  public:
    using std::invalid_argument::invalid_argument;
};

// Weights and gradients have this type, at rest and on the wire. Master weights, momentum and
// variance are always fp32.
enum class Precision { fp32, bf16, fp16 };
DType weight_type(Precision precision);

enum class Decay {
    decoupled,  // AdamW: p -= lr * decay * p, beside the step
    l2          // decay * p is added to the gradient
};

struct ParameterGroup {
    float learning_rate = 1e-3f;
    float beta1 = 0.9f;
    float beta2 = 0.999f;
    float epsilon = 1e-8f;
    float weight_decay = 0.0f;
    Decay decay = Decay::decoupled;
};

// Dynamic loss scaling (Micikevicius et al., Mixed Precision Training, section 3.2), for fp16.
struct LossScaleOptions {
    float initial = 65536.0f;
    float factor = 2.0f;         // of growth and of backoff
    int growth_interval = 1000;  // steps without overflow until the scale grows
    int hysteresis = 1;          // overflows until the scale backs off
    float minimum = 1.0f;
};

struct Options {
    int stage = 0;  // 0 is plain data parallelism
    Precision precision = Precision::fp32;
    int micro_steps = 1;  // in one accumulation window
    std::vector<ParameterGroup> groups;
    std::size_t bucket_elements = 1 << 20;
    bool overlap = true;   // reduce gradients while backward goes on
    bool prefetch = true;  // stage 3: gather the next unit while this one computes
    double clip_norm = 0;  // 0 does not clip
    LossScaleOptions loss_scale;
};

// Throws Unsupported, naming the option or the parameter that is wrong.
void check(const Options& options, const Model& model);

}  // namespace zeroproof::reference
