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

bool Case::has(ActionKind kind) const {
    return std::ranges::count(program, kind, &Action::kind) > 0;
}

bool Case::has_reload() const {
    return has(ActionKind::reload);
}

bool Case::changes_trainable() const {
    return has(ActionKind::freeze) || has(ActionKind::unfreeze) || has(ActionKind::add_group);
}

std::size_t uses_of(const Case& c, std::size_t parameter) {
    std::size_t uses = 0;
    for (const UnitCase& unit : c.units)
        uses += static_cast<std::size_t>(std::ranges::count(unit.parameters, parameter));
    return uses;
}

std::string_view name_of(Precision precision) {
    constexpr std::string_view names[] = {"fp32", "bf16", "fp16"};
    return names[static_cast<std::size_t>(precision)];
}

std::string_view name_of(ActionKind kind) {
    constexpr std::string_view names[kActionKinds] = {
        "micro_step",     "step",         "zero_grad", "evaluate", "reload",
        "read",           "save",         "load",      "rate",     "clip",
        "scale_gradient", "scale_weight", "freeze",    "unfreeze", "add_group"};
    return names[static_cast<std::size_t>(kind)];
}

}  // namespace zeroproof::suites
