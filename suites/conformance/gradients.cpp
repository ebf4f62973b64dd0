#include "suites/conformance/gradients.h"

#include <algorithm>
#include <cmath>

namespace zeroproof::suites {

namespace {

// splitmix64: a well-mixed function of its argument.
std::uint64_t mix(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

std::uint64_t key_of(const std::string& name, std::uint64_t seed) {
    std::uint64_t key = mix(seed);
    for (const char letter : name) key = mix(key ^ static_cast<unsigned char>(letter));
    return key;
}

int mantissa_bits(Precision precision) {
    switch (precision) {
        case Precision::fp32: return 24;
        case Precision::fp16: return 11;
        case Precision::bf16: return 8;
    }
    return 8;
}

int odd_part(int value) {
    while (value > 0 && value % 2 == 0) value /= 2;
    return value;
}

// At most 2^12, so that fp32 cases keep to the range of fp16 too.
int largest_sum(Precision precision) {
    return 1 << std::min(mantissa_bits(precision), 12);
}

constexpr int kLargestDigit = 4;

bool is_usual(Usage usage, int rank, std::size_t window_micro_step) {
    switch (usage) {
        case Usage::always: return true;
        case Usage::even_ranks: return rank % 2 == 0;
        case Usage::odd_micro_steps: return window_micro_step % 2 == 1;
        case Usage::alternating:
            return (static_cast<std::size_t>(rank) + window_micro_step) % 2 == 0;
        case Usage::never: return false;
    }
    return true;
}

}  // namespace

Gradients::Gradients(const Case& c, int ranks) : case_(c), ranks_(ranks) {
    for (const ParameterCase& parameter : c.parameters)
        parameter_keys_.push_back(key_of(parameter.name, c.seed));
    for (const Action& action : c.program)
        if (action.kind == ActionKind::micro_step) micro_steps_.push_back(&action);
    budget_ = largest_sum(c.precision) / odd_part(ranks * c.micro_steps);
    largest_digit_ = std::clamp(budget_, 1, kLargestDigit);
}

bool Gradients::can_be_exact(const Case& c, int ranks) {
    return odd_part(ranks * c.micro_steps) <= largest_sum(c.precision);
}

bool Gradients::fits_fp16(const Case& c, int ranks) {
    if (ranks == 0) return true;
    std::size_t uses = 1;
    int highest = -64;
    int lowest = 64;
    for (std::size_t p = 0; p < c.parameters.size(); ++p) {
        uses = std::max(uses, uses_of(c, p));
        highest = std::max(highest, c.parameters[p].gradient_exponent);
        lowest = std::min(lowest, c.parameters[p].gradient_exponent);
    }
    const auto steps = std::ranges::count(c.program, ActionKind::step, &Action::kind);
    const double growths = static_cast<double>(steps / c.loss_scale.growth_interval);
    const double scale = c.loss_scale.initial * std::pow(c.loss_scale.factor, growths);
    // The plain sum over ranks, micro-steps and uses is the largest that any order comes to.
    const double contributions =
        static_cast<double>(ranks) * c.micro_steps * static_cast<double>(uses);
    const int budget = largest_sum(c.precision) / odd_part(ranks * c.micro_steps);
    const double digits = std::min(static_cast<double>(budget), kLargestDigit * contributions);
    const double largest = std::ldexp(digits * ranks * c.micro_steps, highest - 6) * scale;
    // The smallest normal number: below it, spacing does not follow the value.
    const double smallest = std::ldexp(c.loss_scale.minimum, lowest - 6);
    return largest <= 65504 && smallest >= 0x1p-14;
}

double Gradients::exact(const Contribution& from, std::size_t parameter,
                        std::size_t element) const {
    // The contributions of a window stand in a circle; those within the budget, from a point
    // that the element chooses, are not zero.
    const auto uses = uses_of(case_, parameter);
    const auto ga = static_cast<std::size_t>(case_.micro_steps);
    const std::size_t contributions = static_cast<std::size_t>(ranks_) * ga * uses;
    const std::uint64_t key = mix(parameter_keys_[parameter] ^ mix(element));
    const std::size_t place =
        (static_cast<std::size_t>(from.rank) * ga + from.micro_step % ga) * uses + from.use;
    const std::size_t active =
        std::max<std::size_t>(1, static_cast<std::size_t>(budget_ / largest_digit_));
    if (active < contributions && (place + key % contributions) % contributions >= active) return 0;

    const std::uint64_t hash = mix(
        key ^ mix(static_cast<std::uint64_t>(from.rank) << 40 | from.micro_step << 8 | from.use));
    const int digit = 1 + static_cast<int>(hash % static_cast<std::uint64_t>(largest_digit_));
    const int sign = (hash >> 32) % 2 == 0 ? 1 : -1;
    return std::ldexp(static_cast<double>(sign * digit * ranks_ * case_.micro_steps),
                      case_.parameters[parameter].gradient_exponent - 6);
}

bool Gradients::is_used(std::size_t parameter, int rank, std::size_t micro_step) const {
    const auto ga = static_cast<std::size_t>(case_.micro_steps);
    if (!is_usual(case_.parameters[parameter].usage, rank, micro_step % ga)) return false;
    if (micro_step >= micro_steps_.size()) return true;
    return std::ranges::none_of(micro_steps_[micro_step]->unused, [&](const Unused& unused) {
        return unused.parameter == parameter && (unused.rank < 0 || unused.rank == rank);
    });
}

double Gradients::value(const Contribution& from, std::size_t parameter,
                        std::size_t element) const {
    if (!is_used(parameter, from.rank, from.micro_step)) return 0;
    for (const Injection& injection : case_.injections)
        if (injection.micro_step == from.micro_step && injection.rank == from.rank &&
            injection.parameter == parameter && injection.element == element)
            return injection.value;
    if (case_.gradients == GradientKind::exact) return exact(from, parameter, element);
    const std::uint64_t hash =
        mix(parameter_keys_[parameter] ^ mix(element) ^
            mix(static_cast<std::uint64_t>(from.rank) << 40 | from.micro_step << 8 | from.use));
    // Uniform in [-1, 1), rounded to the type in which it will be stored.
    double value = std::ldexp(static_cast<double>(hash >> 11), -52) - 1;
    memory::store_element(weight_type(case_.precision), &value, 0, value);
    return memory::load_element(weight_type(case_.precision), &value, 0);
}

void Gradients::fill(const Contribution& from, std::size_t parameter,
                     std::vector<float>& values) const {
    for (std::size_t element = 0; element < values.size(); ++element)
        values[element] = static_cast<float>(value(from, parameter, element));
}

double Gradients::initial_weight(const Case& c, std::size_t parameter, std::size_t element) {
    const std::uint64_t hash = mix(key_of(c.parameters[parameter].name, c.seed) ^ ~element);
    constexpr std::uint64_t kRange = (std::uint64_t{1} << 24) - 1;
    return std::ldexp(static_cast<double>(hash % kRange) - static_cast<double>(kRange / 2), -22);
}

}  // namespace zeroproof::suites
