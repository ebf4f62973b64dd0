#include "harness/programs/simplifications.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace zeroproof::harness {

namespace {

using suites::Action;
using suites::ActionKind;
using suites::GroupCase;
using suites::ParameterCase;

bool has_default_rates(const GroupCase& g) {
    const GroupCase usual;
    return g.learning_rate == usual.learning_rate && g.beta1 == usual.beta1 &&
           g.beta2 == usual.beta2 && g.epsilon == usual.epsilon;
}

bool has_default_loss_scale(const Case& c) {
    const suites::LossScaleCase& s = c.loss_scale;
    const suites::LossScaleCase usual;
    return s.initial == usual.initial && s.factor == usual.factor && s.minimum == usual.minimum &&
           s.growth_interval == usual.growth_interval && s.hysteresis == usual.hysteresis;
}

bool is_one_a_parameter(const Case& c) {
    for (std::size_t u = 0; u < c.units.size(); ++u)
        if (c.units[u].parameters != std::vector{u}) return false;
    return c.units.size() == c.parameters.size();
}

class Simplifications {
  public:
    explicit Simplifications(const Case& c) : c_(c) {}

    std::vector<Edit> all() {
        actions();
        ranks();
        micro_steps();
        parameters();
        units();
        groups();
        settings();
        injections();
        make_leap();
        return std::move(edits_);
    }

  private:
    void add(std::string topic, std::function<void(Draft&)> make) {
        edits_.push_back({std::move(topic), std::move(make)});
    }
    // An edit that leaves all parameters and actions where they are.
    template <typename Change>
    void change(std::string topic, bool useful, Change change) {
        if (!useful) return;
        plain_.push_back(edits_.size());
        add(std::move(topic), [change](Draft& d) { change(d.c); });
    }
    // All of these at once: most failures need little of what is out of the ordinary.
    void make_leap() {
        if (plain_.size() < 2) return;
        std::set<std::string> topics;
        std::vector<std::function<void(Draft&)>> makes;
        for (const std::size_t e : plain_)
            if (topics.insert(edits_[e].topic).second) makes.push_back(edits_[e].make);
        add("all", [makes](Draft& d) {
            for (const auto& make : makes) make(d);
        });
    }
    void drop_actions(std::string topic, std::size_t begin, std::size_t end) {
        add(std::move(topic), [begin, end](Draft& d) {
            for (std::size_t a = begin; a < end; ++a) d.no_action[a] = true;
        });
    }

    void actions() {
        const std::size_t count = c_.program.size();
        // What any program does.
        add("one micro-step", [](Draft& d) {
            d.no_action.assign(d.c.program.size(), true);
            d.c.program.front() = Action{ActionKind::micro_step};
            d.no_action.front() = false;
        });
        std::vector<std::size_t> begins{0};  // of windows, with what stands before them
        for (std::size_t a = 0; a < count; ++a)
            if (c_.program[a].kind == ActionKind::step) begins.push_back(a + 1);
        const std::size_t windows = begins.size() - 1;
        for (std::size_t w = 1; w < windows; w = 2 * w) drop_actions("tail", begins[w], count);
        if (windows > 1) drop_actions("last window", begins[windows - 1], count);
        if (begins.back() < count) drop_actions("after the last window", begins.back(), count);
        for (std::size_t w = 0; w < windows; ++w)
            drop_actions(fmt::format("window {}", w), begins[w], begins[w + 1]);
        std::size_t first_micro_step = 0;  // since the window began
        bool open = false;
        for (std::size_t a = 0; a < count; ++a) {
            const ActionKind kind = c_.program[a].kind;
            if (kind == ActionKind::micro_step) {
                if (!open) first_micro_step = a;
                open = true;
                continue;
            }
            if (kind == ActionKind::zero_grad && open)
                drop_actions(fmt::format("discarded {}", a), first_micro_step, a + 1);
            if (kind == ActionKind::step || kind == ActionKind::zero_grad) open = false;
            drop_actions(fmt::format("action {}", a), a, a + 1);
        }
        for (std::size_t a = 0; a < count; ++a) plainer_action(a);
    }

    void plainer_action(std::size_t a) {
        const Action& action = c_.program[a];
        const std::string topic = fmt::format("what action {} says", a);
        if (action.kind == ActionKind::micro_step) {
            drop_actions(fmt::format("action {}", a), a, a + 1);
            change(topic, !action.unused.empty(), [a](Case& c) { c.program[a].unused.clear(); });
            for (std::size_t u = 0; action.unused.size() > 1 && u < action.unused.size(); ++u)
                change(topic, true, [a, u](Case& c) {
                    if (u < c.program[a].unused.size())
                        c.program[a].unused.erase(c.program[a].unused.begin() +
                                                  static_cast<std::ptrdiff_t>(u));
                });
        }
        change(topic, action.by_model, [a](Case& c) { c.program[a].by_model = false; });
        const bool scales =
            action.kind == ActionKind::scale_gradient || action.kind == ActionKind::scale_weight;
        change(topic, scales && action.value != 2, [a](Case& c) { c.program[a].value = 2; });
    }

    void ranks() {
        for (int n = 1; n < c_.ranks; ++n) change("ranks", true, [n](Case& c) { c.ranks = n; });
        const int reloaded = c_.resume_ranks;
        change("resume ranks", reloaded > 0, [](Case& c) { c.resume_ranks = 0; });
        for (int n = 1; n < reloaded; ++n)
            change("resume ranks", true, [n](Case& c) { c.resume_ranks = n; });
        change("resume stage", c_.resume_stage >= 0, [](Case& c) { c.resume_stage = -1; });
    }

    // The first micro-steps of each window stay.
    void micro_steps() {
        for (int ga = 1; ga < c_.micro_steps; ++ga)
            add("micro-steps", [ga](Draft& d) {
                d.c.micro_steps = ga;
                int seen = 0;
                for (std::size_t a = 0; a < d.c.program.size(); ++a) {
                    const ActionKind kind = d.c.program[a].kind;
                    if (kind == ActionKind::micro_step && ++seen > ga) d.no_action[a] = true;
                    if (kind == ActionKind::step || kind == ActionKind::zero_grad) seen = 0;
                }
            });
    }

    void parameters() {
        const std::size_t count = c_.parameters.size();
        for (const auto& [begin, end] :
             {std::pair{count / 2, count}, std::pair{std::size_t{0}, count / 2}})
            if (count > 3)
                add("half of the parameters", [b = begin, e = end](Draft& d) {
                    for (std::size_t p = b; p < e; ++p) d.no_parameter[p] = true;
                });
        for (std::size_t p = 0; count > 1 && p < count; ++p)
            add(fmt::format("parameter {}", p), [p](Draft& d) { d.no_parameter[p] = true; });
        for (std::size_t p = 0; p < count; ++p) plainer_parameter(p);
    }

    void plainer_parameter(std::size_t p) {
        const ParameterCase& parameter = c_.parameters[p];
        const std::string shape = fmt::format("shape {}", p);
        const std::size_t elements = parameter.elements();
        std::size_t before = 0;
        for (const std::size_t fewer :
             {std::size_t{1}, std::size_t{2}, elements / 2, elements * 3 / 4, elements - 1}) {
            if (elements < 2 || fewer <= before || fewer >= elements) continue;
            change(shape, true, [p, fewer](Case& c) { c.parameters[p].shape = {fewer}; });
            before = fewer;
        }
        change(shape, parameter.shape.size() != 1,
               [p, elements](Case& c) { c.parameters[p].shape = {elements}; });
        change(shape, elements == 0, [p](Case& c) { c.parameters[p].shape = {1}; });
        change(fmt::format("usage {}", p), parameter.usage != suites::Usage::always,
               [p](Case& c) { c.parameters[p].usage = suites::Usage::always; });
        change(fmt::format("trainable {}", p), !parameter.trainable,
               [p](Case& c) { c.parameters[p].trainable = true; });
        change(fmt::format("exponent {}", p), parameter.gradient_exponent != 0,
               [p](Case& c) { c.parameters[p].gradient_exponent = 0; });
    }

    void units() {
        change("units", !is_one_a_parameter(c_), [](Case& c) {
            c.units.clear();
            for (std::size_t p = 0; p < c.parameters.size(); ++p) c.units.push_back({"", {p}});
        });
        for (std::size_t u = 0; u < c_.units.size(); ++u) {
            if (c_.units.size() > 1)
                add(fmt::format("unit {}", u), [u](Draft& d) { d.no_unit[u] = true; });
            for (const std::size_t p : c_.units[u].parameters)
                change(fmt::format("use {} {}", u, p), c_.units[u].parameters.size() > 1,
                       [u, p](Case& c) {
                           if (u < c.units.size()) std::erase(c.units[u].parameters, p);
                       });
        }
    }

    void groups() {
        for (std::size_t count = 1; count < c_.groups.size(); ++count)
            add("groups", [count](Draft& d) {
                const int last = static_cast<int>(count) - 1;
                d.c.groups.resize(count);
                for (ParameterCase& parameter : d.c.parameters)
                    parameter.group = std::min(parameter.group, last);
                for (std::size_t a = 0; a < d.c.program.size(); ++a) {
                    Action& action = d.c.program[a];
                    if (action.kind == ActionKind::add_group && action.group > last)
                        d.no_action[a] = true;
                    action.group = std::min(action.group, last);
                }
            });
        for (std::size_t g = 0; g < c_.groups.size(); ++g) {
            const GroupCase& group = c_.groups[g];
            const auto reset = [&](const char* what, bool useful, auto&& edit) {
                change(fmt::format("{} of group {}", what, g), useful, [g, edit](Case& c) {
                    if (g < c.groups.size()) edit(c.groups[g]);
                });
            };
            reset("rates", !has_default_rates(group), [](GroupCase& one) {
                const GroupCase usual;
                one.learning_rate = usual.learning_rate;
                one.beta1 = usual.beta1;
                one.beta2 = usual.beta2;
                one.epsilon = usual.epsilon;
            });
            reset("decay", group.weight_decay != 0, [](GroupCase& one) { one.weight_decay = 0; });
            reset("form", group.l2, [](GroupCase& one) { one.l2 = false; });
        }
    }

    void settings() {
        const Case usual;
        change("clip", c_.clip_norm != 0, [](Case& c) { c.clip_norm = 0; });
        change("precision", c_.precision != suites::Precision::fp32,
               [](Case& c) { c.precision = suites::Precision::fp32; });
        change("precision", c_.precision == suites::Precision::fp16,
               [](Case& c) { c.precision = suites::Precision::bf16; });
        change("loss scale", !has_default_loss_scale(c_), [](Case& c) { c.loss_scale = {}; });
        change("gradients", c_.gradients != usual.gradients,
               [](Case& c) { c.gradients = suites::GradientKind::exact; });
        change("model", c_.model != usual.model, [](Case& c) { c.model = suites::Model::dot; });
        change("surroundings", c_.surroundings != usual.surroundings,
               [](Case& c) { c.surroundings = suites::Surroundings::plain; });
        change("overlap", !c_.overlap, [](Case& c) { c.overlap = true; });
        change("prefetch", !c_.prefetch, [](Case& c) { c.prefetch = true; });
        for (const std::size_t bucket : {std::size_t{16}, std::size_t{1024}})
            change("bucket", c_.bucket_elements != bucket,
                   [bucket](Case& c) { c.bucket_elements = bucket; });
        if (c_.options.size() > 1) change("options", true, [](Case& c) { c.options.clear(); });
        for (const auto& [name, value] : c_.options)
            change("option " + name, true, [n = name](Case& c) { c.options.erase(n); });
        change("seed", c_.seed != usual.seed, [](Case& c) { c.seed = 1; });
    }

    void injections() {
        change("injections", c_.injections.size() > 1, [](Case& c) { c.injections.clear(); });
        for (std::size_t i = 0; i < c_.injections.size(); ++i) {
            const auto topic = fmt::format("injection {}", i);
            // A place out of the program, which is left out in the end.
            change(topic, true, [i](Case& c) {
                if (i < c.injections.size()) c.injections[i].micro_step = c.program.size();
            });
            change("element of " + topic, c_.injections[i].element > 0, [i](Case& c) {
                if (i < c.injections.size()) c.injections[i].element = 0;
            });
        }
    }

    const Case& c_;
    std::vector<Edit> edits_;
    std::vector<std::size_t> plain_;  // of edits_
};

// The new index of each that stays.
std::vector<std::size_t> renumbered(const std::vector<bool>& gone) {
    std::vector<std::size_t> indices;
    std::size_t next = 0;
    for (const bool one : gone) indices.push_back(one ? 0 : next++);
    return indices;
}

bool names_a_parameter(const Action& action) {
    return action.kind == ActionKind::scale_gradient || action.kind == ActionKind::scale_weight ||
           action.kind == ActionKind::freeze || action.kind == ActionKind::unfreeze;
}

}  // namespace

Draft::Draft(Case original)
    : c(std::move(original)),
      no_action(c.program.size(), false),
      no_parameter(c.parameters.size(), false),
      no_unit(c.units.size(), false) {}

std::vector<Edit> simplifications(const Case& c) {
    return Simplifications(c).all();
}

Case finished(const Draft& draft) {
    const Case& from = draft.c;
    Case c = from;
    const auto parameters = renumbered(draft.no_parameter);

    c.program.clear();
    std::vector<bool> no_micro_step;
    for (std::size_t a = 0; a < from.program.size(); ++a) {
        Action action = from.program[a];
        const bool gone = (a < draft.no_action.size() && draft.no_action[a]) ||
                          (names_a_parameter(action) && draft.no_parameter[action.parameter]);
        if (action.kind == ActionKind::micro_step) no_micro_step.push_back(gone);
        if (gone) continue;
        std::erase_if(action.unused,
                      [&](const suites::Unused& u) { return draft.no_parameter[u.parameter]; });
        for (suites::Unused& unused : action.unused)
            unused.parameter = parameters[unused.parameter];
        action.parameter = parameters[action.parameter];
        c.program.push_back(std::move(action));
    }
    const auto micro_steps = renumbered(no_micro_step);
    std::erase_if(c.injections, [&](const suites::Injection& i) {
        return i.micro_step >= no_micro_step.size() || no_micro_step[i.micro_step] ||
               draft.no_parameter[i.parameter];
    });
    for (suites::Injection& injection : c.injections) {
        injection.micro_step = micro_steps[injection.micro_step];
        injection.element =
            std::min(injection.element,
                     std::max<std::size_t>(1, from.parameters[injection.parameter].elements()) - 1);
        injection.rank = std::min(injection.rank, c.ranks - 1);
        injection.parameter = parameters[injection.parameter];
    }

    c.parameters.clear();
    for (std::size_t p = 0; p < from.parameters.size(); ++p)
        if (!draft.no_parameter[p]) c.parameters.push_back(from.parameters[p]);
    c.units.clear();
    for (std::size_t u = 0; u < from.units.size(); ++u) {
        if (u < draft.no_unit.size() && draft.no_unit[u]) continue;
        suites::UnitCase unit{"", {}};
        for (const std::size_t p : from.units[u].parameters)
            if (!draft.no_parameter[p]) unit.parameters.push_back(parameters[p]);
        if (!unit.parameters.empty()) c.units.push_back(std::move(unit));
    }
    return c;
}

std::size_t complexity(const Case& c) {
    const Case usual;
    std::size_t sum = 0;
    const auto add = [&](std::size_t weight, bool counts = true) { sum += counts ? weight : 0; };
    add(40 * static_cast<std::size_t>(c.ranks) + 20 * static_cast<std::size_t>(c.micro_steps));
    for (const Action& action : c.program) {
        add((action.kind == ActionKind::micro_step ? 10 : 12) + 5 * action.unused.size());
        add(2, action.by_model);
        add(1, names_a_parameter(action) && action.value != 2);
    }
    for (const ParameterCase& p : c.parameters) {
        add(30 + (p.elements() == 0 ? 3 : p.elements()));
        add(2, p.shape.size() != 1);
        add(8, !p.trainable);
        add(8, p.usage != suites::Usage::always);
        add(4, p.gradient_exponent != 0);
        add(4, p.group != 0);
    }
    for (const suites::UnitCase& unit : c.units) add(2 + 3 * unit.parameters.size());
    add(6, !is_one_a_parameter(c));
    add(15 * (c.groups.size() - 1));
    for (const GroupCase& g : c.groups) {
        add(4, !has_default_rates(g));
        add(6, g.weight_decay != 0);
        add(2, g.l2);
    }
    add(c.bucket_elements == 16 ? 0 : c.bucket_elements == 1024 ? 1 : 2);
    add(3, !c.overlap);
    add(3, !c.prefetch);
    add(10, c.clip_norm != 0);
    add(3, !has_default_loss_scale(c));
    add(10 * static_cast<std::size_t>(c.precision));  // fp32, bf16, fp16
    add(8, c.gradients != usual.gradients);
    add(4, c.model != usual.model);
    add(8, c.surroundings != usual.surroundings);
    add(10 * c.options.size());
    for (const suites::Injection& injection : c.injections)
        add(10 + (injection.element > 0 ? 1 : 0));
    add(8 + static_cast<std::size_t>(std::max(c.resume_ranks, 0)), c.resume_ranks > 0);
    add(8, c.resume_stage >= 0);
    add(1, c.seed != usual.seed);
    return sum;
}

}  // namespace zeroproof::harness
