#include "harness/programs/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "harness/programs/decidable.h"
#include "harness/programs/program_maker.h"
#include "harness/programs/random.h"
#include "suites/conformance/oracle.h"

namespace zeroproof::harness {

namespace {

using suites::ActionKind;
using suites::ParameterCase;
using suites::Precision;

constexpr std::string_view kNumber = "program=";  // in the id
constexpr int kAttempts = 12;
constexpr std::size_t kMostElements = 400;  // of a case: the programs are many, and small

class CaseMaker {
  public:
    CaseMaker(const ProgramSpace& space, Random& random) : space_(space), random_(random) {}

    Case make() {
        c_.stage = random_.any(space_.stages);
        c_.ranks = random_.any(space_.ranks);
        if (c_.ranks == 1 && random_.chance(60)) c_.ranks = random_.any(space_.ranks);
        c_.micro_steps = random_.pick({1, 1, 1, 2, 2, 3, 3, 4});
        c_.precision = random_.any(space_.declaration.precisions);
        c_.gradients =
            random_.chance(85) ? suites::GradientKind::exact : suites::GradientKind::rounding;
        c_.model = random_.chance(35) ? suites::Model::echo : suites::Model::dot;
        c_.surroundings =
            random_.chance(25) ? suites::Surroundings::hostile : suites::Surroundings::plain;
        c_.overlap = random_.chance(70);
        c_.prefetch = random_.chance(70);
        c_.seed = 1 + random_.below(1'000'000);
        c_.bucket_elements = random_.pick<std::size_t>({1, 2, 3, 4, 5, 7, 8, 16, 64, 1024, n()});
        make_groups();
        make_parameters();
        make_units();
        choose_bucket();
        if (random_.chance(25)) c_.clip_norm = std::ldexp(1.0, random_.between(-3, 3));
        make_loss_scale();
        make_program(space_, random_, c_);
        choose_clipping();
        choose_options();
        return std::move(c_);
    }

  private:
    std::size_t n() const { return static_cast<std::size_t>(c_.ranks); }

    void make_groups() {
        c_.groups.resize(random_.pick<std::size_t>({1, 1, 1, 1, 2, 2, 3}));
        for (suites::GroupCase& group : c_.groups) {
            if (random_.chance(30)) continue;  // all defaults
            group.learning_rate = random_.pick({0.0, 0x1p-10, 0x1p-6, 0x1p-3, 0.5});
            group.beta1 = random_.pick({0.0, 0.5, 0.875, 0.9375});
            group.beta2 = random_.pick({0.0, 0.75, 0.96875, 0.9990234375});
            group.epsilon = random_.pick({0.125, 0.125, 0.5, 1.0, 0x1p-10});
            if (random_.chance(50)) group.weight_decay = random_.pick({0x1p-6, 0x1p-3, 0.5});
            group.l2 = random_.chance(50);
        }
    }

    void make_parameters() {
        const int count = random_.pick({1, 1, 2, 2, 3, 3, 4, 5, 6, 8});
        std::size_t left = kMostElements;
        for (int p = 0; p < count; ++p) {
            ParameterCase parameter;
            parameter.name = std::string(1, static_cast<char>('a' + p));
            // Some names begin as another one.
            if (p > 0 && random_.chance(20))
                parameter.name = c_.parameters.back().name + parameter.name;
            parameter.shape = random_shape();
            if (parameter.elements() > left) parameter.shape = {n()};
            left -= std::min(left, parameter.elements());
            parameter.trainable = !random_.chance(12);
            parameter.usage = static_cast<suites::Usage>(random_.chance(75) ? 0 : random_.below(5));
            if (random_.chance(20)) parameter.gradient_exponent = random_.between(-6, 6);
            // Interleaved; a group may come away with nothing.
            parameter.group = static_cast<int>(random_.below(c_.groups.size()));
            c_.parameters.push_back(std::move(parameter));
        }
        // Beyond the blocks in which implementations work.
        if (random_.chance(3))
            c_.parameters.back().shape = {random_.pick<std::size_t>({257, 300, 1025, 4099})};
        if (std::ranges::none_of(c_.parameters, &ParameterCase::trainable))
            c_.parameters[random_.below(c_.parameters.size())].trainable = true;
    }

    std::vector<std::size_t> random_shape() {
        if (random_.chance(4)) return {};
        if (random_.chance(22))
            return {random_.pick<std::size_t>({1, n(), n() + 1, 2 * n() + 1, 3, 5, 0}),
                    random_.pick<std::size_t>({1, 2, 3, 5, n()})};
        const std::size_t b = c_.bucket_elements;
        return {random_.pick<std::size_t>({0, 1, n() - 1, n(), n() + 1, 2 * n() + 1, 2 * n(), 2, 5,
                                           7, 13, 31, b - 1, b, b + 1, 2 * b, 3 * b + 1})};
    }

    // By parameters in their order or another; some parameters are tied, some in no unit.
    void make_units() {
        std::vector<std::size_t> order;
        for (std::size_t p = 0; p < c_.parameters.size(); ++p)
            if (!random_.chance(6)) order.push_back(p);
        if (random_.chance(25))
            for (std::size_t i = order.size(); i > 1; --i)
                std::swap(order[i - 1], order[random_.below(i)]);
        c_.units.resize(1);
        for (const std::size_t p : order) {
            if (!c_.units.back().parameters.empty() && random_.chance(60)) c_.units.emplace_back();
            c_.units.back().parameters.push_back(p);
        }
        while (!order.empty() && random_.chance(25)) {
            const std::size_t p = random_.any(order);
            if (random_.chance(50)) c_.units.emplace_back();
            suites::UnitCase& unit = c_.units[random_.below(c_.units.size())];
            if (std::ranges::count(unit.parameters, p) == 0) unit.parameters.push_back(p);
        }
        std::erase_if(c_.units, [](const suites::UnitCase& u) { return u.parameters.empty(); });
        if (c_.units.empty()) c_.units.push_back({"", {0}});
    }

    // About the size of a tensor, or of all; not thousands of buckets.
    void choose_bucket() {
        for (const ParameterCase& parameter : c_.parameters)
            if (parameter.elements() > 256)
                c_.bucket_elements = std::max(c_.bucket_elements, parameter.elements() / 16);
        if (!random_.chance(45) || c_.trainable_elements() > kMostElements) return;
        std::size_t elements = random_.any(c_.parameters).elements();
        if (random_.chance(20)) elements = c_.trainable_elements();
        elements += random_.pick<std::size_t>({0, 1, 2});
        c_.bucket_elements = std::max<std::size_t>(2, elements) - 1;
    }

    void make_loss_scale() {
        if (c_.precision != Precision::fp16) return;
        suites::LossScaleCase& scale = c_.loss_scale;
        scale.minimum = random_.pick({1.0, 1.0, 2.0, 8.0});
        scale.initial = std::max(scale.minimum, std::ldexp(1.0, random_.between(0, 8)));
        scale.factor = random_.pick({2.0, 2.0, 4.0});
        scale.growth_interval = random_.pick({1, 1, 2, 3, 1000});
        scale.hysteresis = random_.pick({1, 1, 2, 3});
    }

    // On either side of the norm that a step really has.
    void choose_clipping() {
        if (c_.clip_norm == 0 || random_.chance(20)) return;
        Case plain = c_;
        plain.clip_norm = 0;
        std::erase_if(plain.program,
                      [](const suites::Action& action) { return action.kind == ActionKind::clip; });
        std::vector<double> norms;
        for (const suites::Expected& e : suites::expect(plain, space_.declaration.meanings))
            if (e.kind == ActionKind::step && std::isfinite(e.norm.value) && e.norm.value > 0)
                norms.push_back(e.norm.value);
        if (norms.empty()) return;
        const double norm = random_.any(norms);
        c_.clip_norm = norm * random_.pick({0.25, 0.5, 0.9, 1.0, 1.1, 2.0});
    }

    void choose_options() {
        const int share = random_.pick({0, 15, 40});
        for (const auto& [name, option] : space_.declaration.options) {
            const bool fits = option.stages.contains(c_.stage) &&
                              (c_.resume_stage < 0 || option.stages.contains(c_.resume_stage));
            if (fits && option.values.size() > 1 && random_.chance(share))
                c_.options[name] = option.values[1 + random_.below(option.values.size() - 1)];
        }
    }

    const ProgramSpace& space_;
    Random& random_;
    Case c_;
};

// Where the range of the type was the reason, there is more room at a smaller scale.
void make_milder(Case& c) {
    c.loss_scale.minimum = 1;
    c.loss_scale.initial = std::max(1.0, c.loss_scale.initial / 8);
    for (ParameterCase& parameter : c.parameters) parameter.gradient_exponent = 0;
}

}  // namespace

Case random_case(const ProgramSpace& space, std::uint64_t seed, std::uint64_t number) {
    Random random(Random(seed ^ 0x7A65726F70726F6Fu).next() + number * 0xD1B54A32D192ED03u);
    for (int attempt = 0;; ++attempt) {
        Case c = CaseMaker(space, random).make();
        c.family = "fuzz";
        c.id = fmt::format("fuzz/seed={},{}{}", seed, kNumber, number);
        for (int milder = 0; milder < 3; ++milder, make_milder(c))
            if (const auto read = legal(c); read && decidable(*read, space.declaration))
                return *read;
        if (attempt < kAttempts) continue;
        // Nothing of it was to be had: what can always be decided.
        c.precision = *space.declaration.precisions.begin();
        c.gradients = suites::GradientKind::exact;
        c.micro_steps = 1;
        c.clip_norm = 0;
        c.loss_scale = {};
        c.injections.clear();
        c.program = {{ActionKind::micro_step}, {ActionKind::step}};
        return legal(c).value();
    }
}

std::uint64_t program_number(const Case& c) {
    std::uint64_t number = 0;
    if (const std::size_t at = c.id.find(kNumber); at != std::string::npos)
        std::from_chars(c.id.data() + at + kNumber.size(), c.id.data() + c.id.size(), number);
    return number;
}

}  // namespace zeroproof::harness
