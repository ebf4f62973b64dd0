#include "harness/plugin/plugin_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/plugin/plugin_memory.h"
#include "memory/dtype.h"

namespace zeroproof::harness {

namespace {

memory::DType floating_type(const zeroproof_tensor& tensor, const char* what) {
    if (tensor.type < ZEROPROOF_FP32 || tensor.type > ZEROPROOF_FP64)
        throw PluginFault(fmt::format("type {} of {} is no floating type", tensor.type, what));
    return static_cast<memory::DType>(tensor.type);
}

}  // namespace

void PluginModel::initial_weights(std::size_t parameter, std::size_t begin, std::size_t elements,
                                  float* values) const {
    if (parameter >= case_.parameters.size())
        throw PluginFault(fmt::format("there is no parameter {}", parameter));
    const std::size_t all = case_.parameters[parameter].elements();
    if (begin > all || elements > all - begin)
        throw PluginFault(fmt::format("elements [{}, {} + {}) of {}, which has {}", begin, begin,
                                      elements, case_.parameters[parameter].name, all));
    if (elements > 0 && values == nullptr) throw PluginFault("there is no room for weights");
    for (std::size_t i = 0; i < elements; ++i)
        values[i] =
            static_cast<float>(suites::Gradients::initial_weight(case_, parameter, begin + i));
}

void PluginModel::forward(int action, std::size_t unit, const zeroproof_tensor* weights) {
    observe(action, false, unit, weights);
}

void PluginModel::observe(int action, bool backward, std::size_t unit,
                          const zeroproof_tensor* weights) {
    if (unit >= case_.units.size()) throw PluginFault(fmt::format("there is no unit {}", unit));
    evidence_.in_flight.push_back({action, backward, unit,
                                   meter_.in_flight(collectives::Traffic::gradient),
                                   meter_.in_flight(collectives::Traffic::parameter)});
    const std::vector<std::size_t>& parameters = case_.units[unit].parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const suites::ParameterCase& parameter = case_.parameters[parameters[i]];
        std::vector<float> values(parameter.elements());
        if (values.empty()) {
            // It needs no memory.
        } else if (weights == nullptr || weights[i].data == nullptr) {
            throw PluginFault(fmt::format("the weights of {} are missing", parameter.name));
        } else {
            const memory::DType type = floating_type(weights[i], "weights");
            for (std::size_t e = 0; e < values.size(); ++e)
                values[e] = static_cast<float>(memory::load_element(type, weights[i].data, e));
        }
        if (case_.model == suites::Model::echo)
            evidence_.echoes.push_back({action, backward, unit, parameters[i], std::move(values)});
    }
}

void PluginModel::backward(int action, std::size_t micro_step, std::size_t unit,
                           const zeroproof_tensor* weights, const zeroproof_tensor* gradients,
                           float loss_scale, std::int32_t* used) {
    observe(action, true, unit, weights);
    if (gradients == nullptr) throw PluginFault("there is no room for gradients");
    const std::vector<std::size_t>& parameters = case_.units[unit].parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const std::size_t parameter = parameters[i];
        const bool is_used = gradients_.is_used(parameter, rank_, micro_step);
        if (used != nullptr) used[i] = is_used ? 1 : 0;
        if (!is_used || gradients[i].data == nullptr) continue;
        std::size_t use = 0;
        for (std::size_t u = 0; u < unit; ++u)
            use +=
                static_cast<std::size_t>(std::ranges::count(case_.units[u].parameters, parameter));
        std::vector<float> values(case_.parameters[parameter].elements());
        gradients_.fill({rank_, micro_step, use}, parameter, values);
        const memory::DType type = floating_type(gradients[i], "gradients");
        for (std::size_t e = 0; e < values.size(); ++e) {
            // A double holds such a sum well enough that it rounds once.
            const double sum =
                memory::load_element(type, gradients[i].data, e) + double{values[e] * loss_scale};
            memory::store_element(type, gradients[i].data, e, sum);
        }
    }
}

}  // namespace zeroproof::harness
