#include "suites/conformance/oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "suites/conformance/gradients.h"

namespace zeroproof::suites {

namespace {

constexpr double kRoundoff = 0x1p-23;   // twice the unit roundoff of fp32, see Bounded
constexpr double kSmallest = 0x1p-148;  // of the subnormals, likewise

Bounded rounded(double value, double propagated) {
    return {value, propagated + kRoundoff * (std::abs(value) + propagated) + kSmallest};
}
Bounded exactly(double value) {
    return {value, 0};
}
Bounded operator+(Bounded a, Bounded b) {
    return rounded(a.value + b.value, a.error + b.error);
}
Bounded operator-(Bounded a, Bounded b) {
    return rounded(a.value - b.value, a.error + b.error);
}
Bounded operator*(Bounded a, Bounded b) {
    return rounded(a.value * b.value,
                   std::abs(a.value) * b.error + std::abs(b.value) * a.error + a.error * b.error);
}
Bounded operator/(Bounded a, Bounded b) {
    const double quotient = a.value / b.value;
    return rounded(quotient,
                   (a.error + std::abs(quotient) * b.error) / (std::abs(b.value) - b.error));
}
Bounded root(Bounded a) {
    const double lowest = std::max(0.0, a.value - a.error);
    return rounded(std::sqrt(a.value), std::max(std::sqrt(a.value) - std::sqrt(lowest),
                                                std::sqrt(a.value + a.error) - std::sqrt(a.value)));
}

void adam(const GroupCase& group, std::int64_t t, Bounded g, Bounded& m, Bounded& v, Bounded& p) {
    const Bounded beta1 = exactly(group.beta1);
    const Bounded beta2 = exactly(group.beta2);
    const Bounded rate = exactly(group.learning_rate);
    const Bounded decay = exactly(group.weight_decay);
    const auto steps = static_cast<double>(t);
    if (group.l2 && group.weight_decay != 0) g = g + decay * p;
    m = beta1 * m + exactly(1 - group.beta1) * g;
    v = beta2 * v + exactly(1 - group.beta2) * (g * g);
    const Bounded m_hat = m / rounded(1 - std::pow(group.beta1, steps), 0);
    const Bounded v_hat = v / rounded(1 - std::pow(group.beta2, steps), 0);
    Bounded change = m_hat / (root(v_hat) + exactly(group.epsilon));
    if (!group.l2 && group.weight_decay != 0) change = change + decay * p;
    p = p - rate * change;
}

class Oracle {
  public:
    explicit Oracle(const Case& c) : case_(c), ranks_(c.ranks) {
        state_.loss_scale = c.loss_scale_at_start();
        overflows_left_ = c.loss_scale.hysteresis;
        for (std::size_t p = 0; p < c.parameters.size(); ++p) {
            const std::size_t elements = c.parameters[p].elements();
            ExpectedParameter parameter;
            parameter.gradient.resize(elements);
            parameter.momentum.resize(elements);
            parameter.variance.resize(elements);
            for (std::size_t e = 0; e < elements; ++e)
                parameter.master.push_back(exactly(Gradients::initial_weight(c, p, e)));
            state_.parameters.push_back(std::move(parameter));
        }
    }

    std::vector<Expected> run() {
        note(-1, ActionKind::step);
        for (std::size_t a = 0; a < case_.program.size(); ++a) {
            const ActionKind kind = case_.program[a].kind;
            switch (kind) {
                case ActionKind::micro_step: ++micro_step_; continue;
                case ActionKind::step: step(); break;
                case ActionKind::zero_grad: window_begin_ = micro_step_; break;
                case ActionKind::evaluate: break;
                case ActionKind::reload:
                    if (case_.resume_ranks > 0) ranks_ = case_.resume_ranks;
                    break;
            }
            note(static_cast<int>(a), kind);
        }
        return std::move(expected_);
    }

  private:
    void note(int action, ActionKind kind) {
        state_.action = action;
        state_.kind = kind;
        expected_.push_back(state_);
    }

    void step() {
        state_.window_begin = window_begin_;
        state_.window_end = micro_step_;
        window_begin_ = micro_step_;
        average_gradients();

        double sum_of_squares = 0;
        double error = 0;
        bool finite = true;
        for (std::size_t p = 0; p < case_.parameters.size(); ++p) {
            if (!case_.parameters[p].trainable) continue;
            for (const Bounded g : state_.parameters[p].gradient) {
                finite = finite && std::isfinite(g.value);
                sum_of_squares += g.value * g.value;
                error += 2 * std::abs(g.value) * g.error + g.error * g.error;
            }
        }
        state_.skipped = !finite;
        if (!finite) {
            state_.norm = exactly(std::numeric_limits<double>::infinity());
            ++state_.steps_skipped;
            scale_after_overflow();
            return;
        }
        const double norm = std::sqrt(sum_of_squares);
        state_.norm = {norm, norm > 0 ? error / norm : std::sqrt(error)};
        state_.clip_coefficient = exactly(1);
        if (case_.clip_norm > 0 && norm > case_.clip_norm)
            state_.clip_coefficient = exactly(case_.clip_norm) / state_.norm;

        ++state_.steps_taken;
        for (std::size_t p = 0; p < case_.parameters.size(); ++p) {
            const ParameterCase& parameter = case_.parameters[p];
            if (!parameter.trainable) continue;
            ExpectedParameter& state = state_.parameters[p];
            for (std::size_t e = 0; e < state.master.size(); ++e)
                adam(case_.groups[static_cast<std::size_t>(parameter.group)], state_.steps_taken,
                     state_.clip_coefficient.value == 1
                         ? state.gradient[e]
                         : state.gradient[e] * state_.clip_coefficient,
                     state.momentum[e], state.variance[e], state.master[e]);
        }
        scale_after_step();
    }

    // The sum over ranks and micro-steps divided by N * GA.
    void average_gradients() {
        const Gradients gradients(case_, ranks_);
        const double divisor = double(ranks_) * case_.micro_steps;
        for (std::size_t p = 0; p < case_.parameters.size(); ++p) {
            const std::size_t uses = uses_of(case_, p);
            for (std::size_t e = 0; e < case_.parameters[p].elements(); ++e) {
                double sum = 0;
                double size = 0;
                for (int rank = 0; rank < ranks_; ++rank)
                    for (std::size_t k = state_.window_begin; k < state_.window_end; ++k)
                        for (std::size_t use = 0; use < uses; ++use) {
                            const double g = gradients.value({rank, k, use}, p, e);
                            sum += g;
                            size += std::abs(g);
                        }
                state_.parameters[p].gradient[e] = {sum / divisor, reduction_error(size / divisor)};
            }
        }
    }

    // Each of at most N * GA * uses partial sums, and two divisions, rounds in the type of the
    // wire; no partial sum is larger than the sum of sizes.
    double reduction_error(double mean_size) const {
        if (case_.gradients == GradientKind::exact) return 0;
        double roundings = 2;
        for (std::size_t p = 0; p < case_.parameters.size(); ++p)
            roundings = std::max(roundings, 2 + double(ranks_) * case_.micro_steps *
                                                    static_cast<double>(uses_of(case_, p)));
        const double roundoff = case_.precision == Precision::fp32   ? 0x1p-24
                                : case_.precision == Precision::fp16 ? 0x1p-11
                                                                     : 0x1p-8;
        // fp16 has subnormals of 2^-24; fp32 and bf16 of less than any gradient here.
        const double smallest = case_.precision == Precision::fp16 ? 0x1p-24 : 0x1p-133;
        return roundings * (roundoff * mean_size * 1.01 + smallest);
    }

    void scale_after_step() {
        if (case_.precision != Precision::fp16) return;
        if (++good_steps_ == case_.loss_scale.growth_interval) {
            state_.loss_scale *= case_.loss_scale.factor;
            overflows_left_ = case_.loss_scale.hysteresis;
            good_steps_ = 0;
        }
    }

    void scale_after_overflow() {
        if (case_.precision != Precision::fp16) return;
        good_steps_ = 0;
        if (overflows_left_ == 1)
            state_.loss_scale =
                std::max(case_.loss_scale.minimum, state_.loss_scale / case_.loss_scale.factor);
        else
            --overflows_left_;
    }

    const Case& case_;
    int ranks_;
    Expected state_;
    std::vector<Expected> expected_;
    std::size_t micro_step_ = 0;
    std::size_t window_begin_ = 0;
    int good_steps_ = 0;
    int overflows_left_ = 1;
};

}  // namespace

std::vector<Expected> expect(const Case& c) {
    return Oracle(c).run();
}

}  // namespace zeroproof::suites
