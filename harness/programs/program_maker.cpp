#include "harness/programs/program_maker.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace zeroproof::harness {

namespace {

using suites::Action;
using suites::ActionKind;

class ProgramMaker {
  public:
    ProgramMaker(const ProgramSpace& space, Random& random, Case& c)
        : space_(space), random_(random), c_(c) {
        // What a checkpoint holds of parameters that join on the way is nowhere specified.
        const bool changes = random_.chance(35);
        for (const ActionKind kind : space.declaration.actions)
            if (changes != is_of_checkpoints(kind) ||
                (!is_of_checkpoints(kind) && !changes_trainable(kind)))
                allowed_.push_back(kind);
        for (const suites::ParameterCase& parameter : c.parameters)
            trained_.push_back(parameter.trainable);
        choose_late_group();
    }

    void make() {
        const int windows = random_.pick({1, 1, 2, 2, 2, 3, 3, 4, 5});
        for (int window = 0; window < windows; ++window) {
            between();
            if (random_.chance(4))
                add({ActionKind::step});  // without a gradient
            else
                make_window();
        }
        if (late_group_ > 0) add_late_group();
        between();
        inject();
    }

  private:
    static bool is_of_checkpoints(ActionKind kind) {
        return kind == ActionKind::save || kind == ActionKind::load || kind == ActionKind::reload;
    }
    static bool changes_trainable(ActionKind kind) {
        return kind == ActionKind::freeze || kind == ActionKind::unfreeze ||
               kind == ActionKind::add_group;
    }
    bool may(ActionKind kind) const { return std::ranges::count(allowed_, kind) > 0; }
    void add(Action action) { c_.program.push_back(std::move(action)); }

    std::size_t trained_besides(int group) const {
        std::size_t count = 0;
        for (std::size_t p = 0; p < trained_.size(); ++p)
            count += trained_[p] && c_.parameters[p].group != group;
        return count;
    }

    // A group whose parameters join later on; others are trained from the beginning.
    void choose_late_group() {
        if (c_.groups.size() < 2 || !may(ActionKind::add_group) || !random_.chance(50)) return;
        const auto group = random_.between(1, static_cast<int>(c_.groups.size()) - 1);
        if (trained_besides(group) == 0) return;
        late_group_ = group;
        for (std::size_t p = 0; p < trained_.size(); ++p)
            if (c_.parameters[p].group == group) trained_[p] = false;
    }

    void add_late_group() {
        Action action{ActionKind::add_group};
        action.group = late_group_;
        add(action);
        for (std::size_t p = 0; p < trained_.size(); ++p)
            if (c_.parameters[p].group == late_group_) trained_[p] = c_.parameters[p].trainable;
        late_group_ = 0;
    }

    void between() {
        for (int more = random_.pick({0, 0, 1, 1, 2}); more > 0 && !allowed_.empty(); --more)
            add_between(random_.any(allowed_));
    }

    // Between two windows; nothing if the kind has no place there now.
    void add_between(ActionKind kind) {
        Action action{kind};
        action.parameter = random_.below(c_.parameters.size());
        switch (kind) {
            case ActionKind::evaluate:
            case ActionKind::read: break;
            case ActionKind::zero_grad: action.by_model = random_.chance(50); break;
            case ActionKind::save: saved_ = true; break;
            case ActionKind::load:
                if (!saved_ || rate_changed_) return;
                break;
            case ActionKind::reload:
                if (reloaded_ || rate_changed_) return;
                reload();
                break;
            case ActionKind::rate:
                // Later loads would have no meaning.
                if (may(ActionKind::load) && random_.chance(60)) return;
                rate_changed_ = true;
                action.group = static_cast<int>(random_.below(c_.groups.size()));
                action.value = random_.pick({0.0, 0x1p-10, 0x1p-5, 0.125, 1.0});
                break;
            case ActionKind::scale_weight:
                if (!c_.parameters[action.parameter].trainable) return;
                action.value = factor(-2, 2);
                break;
            case ActionKind::freeze:
                if (!trained_[action.parameter] || trained_besides(-1) < 2) return;
                trained_[action.parameter] = false;
                frozen_.push_back(action.parameter);
                break;
            case ActionKind::unfreeze:
                if (frozen_.empty()) return;
                action.parameter = frozen_.back();
                frozen_.pop_back();
                trained_[action.parameter] = true;
                break;
            case ActionKind::add_group:
                if (late_group_ > 0) add_late_group();
                return;
            case ActionKind::micro_step:
            case ActionKind::step:
            case ActionKind::clip:
            case ActionKind::scale_gradient: return;  // of a window
        }
        add(std::move(action));
    }

    void reload() {
        reloaded_ = true;
        saved_ = false;  // that was in another process
        if (random_.chance(60)) c_.resume_ranks = random_.any(space_.ranks);
        if (random_.chance(40)) c_.resume_stage = random_.any(space_.stages);
    }

    double factor(int lowest, int highest) {
        const double size = std::ldexp(1.0, random_.between(lowest, highest));
        return random_.chance(25) ? -size : size;
    }

    void make_window() {
        int discards = 1;
        for (int micro_step = 0; micro_step < c_.micro_steps; ++micro_step) {
            add_micro_step();
            look();
            if (discards > 0 && may(ActionKind::zero_grad) && random_.chance(8)) {
                --discards;
                add_between(ActionKind::zero_grad);
                micro_step = -1;
                if (random_.chance(15)) break;  // and then a step without a gradient
            }
        }
        const bool whole = c_.program.back().kind != ActionKind::zero_grad;
        for (const ActionKind kind : {ActionKind::scale_gradient, ActionKind::clip})
            if (whole && may(kind) && random_.chance(12)) {
                Action action{kind};
                action.parameter = random_.below(c_.parameters.size());
                action.value = kind == ActionKind::clip ? std::ldexp(1.0, random_.between(-3, 3))
                                                        : factor(-2, 2);
                add(std::move(action));
                look();
            }
        add({ActionKind::step});
    }

    void add_micro_step() {
        Action action{ActionKind::micro_step};
        if (random_.chance(15))
            for (int more = random_.pick({1, 1, 2}); more > 0; --more)
                action.unused.push_back(
                    {random_.below(c_.parameters.size()), random_.chance(35) ? -1 : rank()});
        add(std::move(action));
    }

    void look() {
        for (const ActionKind kind : {ActionKind::evaluate, ActionKind::read})
            if (may(kind) && random_.chance(8)) add({kind});
    }

    int rank() { return static_cast<int>(random_.below(static_cast<std::size_t>(c_.ranks))); }

    // Elements that are not finite, at the edges of parameters.
    void inject() {
        if (!space_.declaration.skips_non_finite) return;
        if (!random_.chance(c_.precision == suites::Precision::fp16 ? 50 : 20)) return;
        const auto micro_steps = static_cast<std::size_t>(
            std::ranges::count(c_.program, ActionKind::micro_step, &Action::kind));
        if (micro_steps == 0) return;
        constexpr double infinity = std::numeric_limits<double>::infinity();
        // One overflow after another, for what the loss scale remembers of them.
        if (c_.precision == suites::Precision::fp16 && random_.chance(40))
            for (std::size_t k = 0; k < micro_steps; ++k) {
                const std::size_t parameter = random_.below(c_.parameters.size());
                if (c_.parameters[parameter].elements() > 0 && random_.chance(35))
                    c_.injections.push_back({k, rank(), parameter, 0, infinity});
            }
        for (int more = random_.pick({1, 1, 2, 3}); more > 0; --more) {
            const std::size_t parameter = random_.below(c_.parameters.size());
            const std::size_t elements = c_.parameters[parameter].elements();
            if (elements == 0) continue;
            c_.injections.push_back(
                {random_.below(micro_steps), rank(), parameter,
                 random_.pick({std::size_t{0}, elements - 1, random_.below(elements)}),
                 random_.pick({infinity, -infinity, std::numeric_limits<double>::quiet_NaN()})});
        }
    }

    const ProgramSpace& space_;
    Random& random_;
    Case& c_;
    std::vector<ActionKind> allowed_;
    std::vector<bool> trained_;        // by parameter, now
    std::vector<std::size_t> frozen_;  // on the way
    int late_group_ = 0;               // that has not joined yet
    bool saved_ = false;
    bool reloaded_ = false;
    bool rate_changed_ = false;
};

}  // namespace

void make_program(const ProgramSpace& space, Random& random, Case& c) {
    ProgramMaker(space, random, c).make();
}

}  // namespace zeroproof::harness
