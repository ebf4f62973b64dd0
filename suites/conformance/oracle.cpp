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
// By a power of two, which rounds nothing.
Bounded scaled(Bounded a, double factor) {
    return {a.value * factor, a.error * std::abs(factor)};
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
    Oracle(const Case& c, const Meanings& meanings, const Observed* observed)
        : case_(c), meanings_(meanings), observed_(observed), ranks_(c.ranks) {
        state_.loss_scale = c.loss_scale_at_start();
        overflows_left_ = c.loss_scale.hysteresis;
        for (const GroupCase& group : c.groups) rates_.push_back(group.learning_rate);
        for (std::size_t p = 0; p < c.parameters.size(); ++p) {
            const std::size_t elements = c.parameters[p].elements();
            ExpectedParameter parameter;
            parameter.gradient.resize(elements);
            parameter.momentum.resize(elements);
            parameter.variance.resize(elements);
            for (std::size_t e = 0; e < elements; ++e)
                parameter.master.push_back(exactly(observed != nullptr
                                                       ? observed->initial_weight(p, e)
                                                       : Gradients::initial_weight(c, p, e)));
            parameter.trained = c.parameters[p].trainable && !joins_late(c.parameters[p].group);
            state_.parameters.push_back(std::move(parameter));
        }
    }

    std::vector<Expected> run() {
        note(-1, ActionKind::step);
        for (std::size_t a = 0; a < case_.program.size(); ++a) {
            const Action& action = case_.program[a];
            if (action.kind == ActionKind::micro_step) {
                ++micro_step_;
                continue;
            }
            act(action);
            note(static_cast<int>(a), action.kind);
        }
        return std::move(expected_);
    }

  private:
    // What a checkpoint holds.
    struct Saved {
        Expected state;
        int good_steps;
        int overflows_left;
    };

    bool joins_late(int group) const {
        return std::ranges::any_of(case_.program, [&](const Action& action) {
            return action.kind == ActionKind::add_group && action.group == group;
        });
    }

    void act(const Action& action) {
        ExpectedParameter& parameter = state_.parameters[action.parameter];
        switch (action.kind) {
            case ActionKind::micro_step:
            case ActionKind::evaluate:
            case ActionKind::read: return;
            case ActionKind::step: step(); return;
            case ActionKind::zero_grad: begin_window(); return;
            case ActionKind::reload:
                if (case_.resume_ranks > 0) ranks_ = case_.resume_ranks;
                return;
            case ActionKind::save: saved_ = {state_, good_steps_, overflows_left_}; return;
            case ActionKind::load:
                state_ = saved_.state;
                good_steps_ = saved_.good_steps;
                overflows_left_ = saved_.overflows_left;
                return;
            case ActionKind::rate:
                rates_[static_cast<std::size_t>(action.group)] = action.value;
                return;
            case ActionKind::clip:
                close_window();
                clip(action.value);
                return;
            case ActionKind::scale_gradient:
                close_window();
                for (Bounded& g : parameter.gradient) g = scaled(g, action.value);
                return;
            case ActionKind::scale_weight:
                for (Bounded& p : parameter.master) p = scaled(p, action.value);
                return;
            case ActionKind::freeze: parameter.trained = false; return;
            case ActionKind::unfreeze: begin_training(parameter); return;
            case ActionKind::add_group:
                for (std::size_t p = 0; p < case_.parameters.size(); ++p)
                    if (case_.parameters[p].group == action.group && case_.parameters[p].trainable)
                        begin_training(state_.parameters[p]);
                return;
        }
    }

    // With clean moments.
    static void begin_training(ExpectedParameter& parameter) {
        if (parameter.trained) return;
        parameter.trained = true;
        parameter.steps_taken = 0;
        std::ranges::fill(parameter.momentum, Bounded{});
        std::ranges::fill(parameter.variance, Bounded{});
    }

    void note(int action, ActionKind kind) {
        state_.action = action;
        state_.kind = kind;
        expected_.push_back(state_);
    }

    void begin_window() {
        window_begin_ = micro_step_;
        is_closed_ = false;
    }

    // Makes the window's mean gradient, once; what edits it comes later.
    void close_window() {
        if (is_closed_) return;
        is_closed_ = true;
        state_.window_begin = window_begin_;
        state_.window_end = micro_step_;
        average_gradients();
    }

    bool is_finite() const {
        for (const ExpectedParameter& parameter : state_.parameters)
            for (const Bounded g : parameter.gradient)
                if (parameter.trained && !std::isfinite(g.value)) return false;
        return true;
    }

    Bounded norm() const {
        double sum_of_squares = 0;
        double error = 0;
        for (const ExpectedParameter& parameter : state_.parameters)
            for (const Bounded g : parameter.gradient) {
                if (!parameter.trained) continue;
                sum_of_squares += g.value * g.value;
                error += 2 * std::abs(g.value) * g.error + g.error * g.error;
            }
        const double value = std::sqrt(sum_of_squares);
        return {value, value > 0 ? error / value : std::sqrt(error)};
    }

    Bounded coefficient(double bound, Bounded of) const {
        if (of.value + meanings_.clip_epsilon <= bound) return exactly(1);
        if (meanings_.clip_epsilon == 0) return exactly(bound) / of;
        return exactly(bound) / (of + exactly(meanings_.clip_epsilon));
    }

    void clip(double bound) {
        if (!is_finite()) return;
        const Bounded factor = coefficient(bound, norm());
        if (factor.value == 1) return;
        for (ExpectedParameter& parameter : state_.parameters)
            for (Bounded& g : parameter.gradient)
                if (parameter.trained) {
                    g = g * factor;
                    g.error += roundoff() * std::abs(g.value);  // in the gradient's own type
                }
    }

    void step() {
        close_window();
        begin_window();
        state_.skipped = !is_finite();
        if (state_.skipped) {
            state_.norm = exactly(std::numeric_limits<double>::infinity());
            ++state_.steps_skipped;
            scale_after_overflow();
            return;
        }
        state_.norm = norm();
        state_.clip_coefficient =
            case_.clip_norm > 0 ? coefficient(case_.clip_norm, state_.norm) : exactly(1);

        for (std::size_t p = 0; p < case_.parameters.size(); ++p)
            state_.parameters[p].has_gradient = has_gradient(p);
        bool has_stepped = meanings_.without_gradient == Meanings::WithoutGradient::zero;
        for (std::size_t p = 0; p < case_.parameters.size(); ++p) {
            const ParameterCase& parameter = case_.parameters[p];
            ExpectedParameter& state = state_.parameters[p];
            if (!state.trained) continue;
            if (meanings_.without_gradient == Meanings::WithoutGradient::skip &&
                !state.has_gradient)
                continue;
            has_stepped = true;
            ++state.steps_taken;
            GroupCase group = case_.groups[static_cast<std::size_t>(parameter.group)];
            group.learning_rate = rates_[static_cast<std::size_t>(parameter.group)];
            for (std::size_t e = 0; e < state.master.size(); ++e)
                adam(group, state.steps_taken,
                     state_.clip_coefficient.value == 1
                         ? state.gradient[e]
                         : state.gradient[e] * state_.clip_coefficient,
                     state.momentum[e], state.variance[e], state.master[e]);
        }
        if (has_stepped) ++state_.steps_taken;
        scale_after_step();
    }

    // Whether any rank has used the parameter in the window.
    bool has_gradient(std::size_t parameter) const {
        const Gradients gradients(case_, ranks_);
        if (uses_of(case_, parameter) == 0) return false;
        if (observed_ != nullptr) return true;
        for (std::size_t k = state_.window_begin; k < state_.window_end; ++k)
            for (int rank = 0; rank < ranks_; ++rank)
                if (gradients.is_used(parameter, rank, k)) return true;
        return false;
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
                            const double g = observed_ != nullptr
                                                 ? observed_->gradient(rank, k, use, p, e)
                                                 : gradients.value({rank, k, use}, p, e);
                            sum += g;
                            size += std::abs(g);
                        }
                state_.parameters[p].gradient[e] = {sum / divisor, reduction_error(size / divisor)};
            }
        }
    }

    // Of the type of the weights and gradients.
    double roundoff() const {
        switch (case_.precision) {
            case Precision::fp16: return 0x1p-11;
            case Precision::bf16: return 0x1p-8;
            case Precision::fp32: break;
        }
        return 0x1p-24;
    }

    // Each of at most N * GA * uses partial sums, and two divisions, rounds in the type of the
    // wire; no partial sum is larger than the sum of sizes.
    double reduction_error(double mean_size) const {
        if (case_.gradients == GradientKind::exact) return 0;
        double roundings = 2;
        for (std::size_t p = 0; p < case_.parameters.size(); ++p)
            roundings = std::max(roundings, 2 + double(ranks_) * case_.micro_steps *
                                                    static_cast<double>(uses_of(case_, p)));
        // fp16 has subnormals of 2^-24; fp32 and bf16 of less than any gradient here.
        const double smallest = case_.precision == Precision::fp16 ? 0x1p-24 : 0x1p-133;
        return roundings * (roundoff() * mean_size * 1.01 + smallest);
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
    const Meanings& meanings_;
    const Observed* observed_;
    int ranks_;
    Expected state_;
    std::vector<double> rates_;  // by group
    Saved saved_{};
    std::vector<Expected> expected_;
    std::size_t micro_step_ = 0;
    std::size_t window_begin_ = 0;
    bool is_closed_ = false;  // the window's gradient is made, and perhaps edited
    int good_steps_ = 0;
    int overflows_left_ = 1;
};

}  // namespace

std::vector<Expected> expect(const Case& c, const Meanings& meanings, const Observed* observed) {
    return Oracle(c, meanings, observed).run();
}

}  // namespace zeroproof::suites
