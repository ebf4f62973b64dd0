// The dynamic loss scale of fp16 training.
#pragma once

#include "reference/options.h"

namespace zeroproof::reference {

// Grows after `growth_interval` steps in a row without overflow. Backs off at an overflow, once
// `hysteresis` overflows were seen since the last growth. fp32 and bf16 train with a scale of 1.
class LossScale {
  public:
    LossScale(Precision precision, const LossScaleOptions& options);

    struct State {
        float value = 1;
        int steps_since_overflow = 0;
        int overflows_left = 1;  // until the scale backs off
        friend bool operator==(const State&, const State&) = default;
    };
    const State& state() const { return state_; }
    // Where the scale is not dynamic it stays 1, even if the state comes from an fp16 run.
    void restore(const State& state) {
        if (dynamic_) state_ = state;
    }
    float value() const { return state_.value; }

    void step_taken();
    void step_skipped();

  private:
    bool dynamic_;
    LossScaleOptions options_;
    State state_;
};

}  // namespace zeroproof::reference
