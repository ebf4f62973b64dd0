#include "suites/conformance/case.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace zeroproof::suites {

std::size_t ParameterCase::elements() const {
    return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

memory::DType weight_type(Precision precision) {
    switch (precision) {
        case Precision::bf16: return memory::DType::bf16;
        case Precision::fp16: return memory::DType::fp16;
        case Precision::fp32: break;
    }
    return memory::DType::fp32;
}

std::size_t Case::trainable_elements() const {
    std::size_t total = 0;
    for (const ParameterCase& parameter : parameters)
        if (parameter.trainable) total += parameter.elements();
    return total;
}

bool Case::has_reload() const {
    return std::ranges::any_of(
        program, [](const Action& action) { return action.kind == ActionKind::reload; });
}

std::size_t uses_of(const Case& c, std::size_t parameter) {
    std::size_t uses = 0;
    for (const UnitCase& unit : c.units)
        uses += static_cast<std::size_t>(std::ranges::count(unit.parameters, parameter));
    return uses;
}

bool is_used(const ParameterCase& parameter, int rank, int micro_step) {
    switch (parameter.usage) {
        case Usage::always: return true;
        case Usage::even_ranks: return rank % 2 == 0;
        case Usage::odd_micro_steps: return micro_step % 2 == 1;
        case Usage::alternating: return (rank + micro_step) % 2 == 0;
        case Usage::never: return false;
    }
    return true;
}

std::string_view name_of(Precision precision) {
    constexpr std::string_view names[] = {"fp32", "bf16", "fp16"};
    return names[static_cast<std::size_t>(precision)];
}

std::string_view name_of(ActionKind kind) {
    constexpr std::string_view names[] = {"micro_step", "step", "zero_grad", "evaluate", "reload"};
    return names[static_cast<std::size_t>(kind)];
}

}  // namespace zeroproof::suites
