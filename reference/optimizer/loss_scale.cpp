#include "reference/optimizer/loss_scale.h"

#include <algorithm>

namespace zeroproof::reference {

LossScale::LossScale(Precision precision, const LossScaleOptions& options)
    : dynamic_(precision == Precision::fp16), options_(options) {
    if (dynamic_) state_ = {options.initial, 0, options.hysteresis};
}

void LossScale::step_taken() {
    if (!dynamic_) return;
    if (++state_.steps_since_overflow < options_.growth_interval) return;
    state_.steps_since_overflow = 0;
    state_.value *= options_.factor;
    state_.overflows_left = options_.hysteresis;
}

void LossScale::step_skipped() {
    if (!dynamic_) return;
    state_.steps_since_overflow = 0;
    if (state_.overflows_left > 1) {
        --state_.overflows_left;
        return;
    }
    state_.value = std::max(state_.value / options_.factor, options_.minimum);
}

}  // namespace zeroproof::reference
