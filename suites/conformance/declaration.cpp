#include "suites/conformance/declaration.h"

#include <fmt/format.h>

namespace zeroproof::suites {

std::string outside_declaration(const Case& c, const Declaration& declaration) {
    if (!declaration.stages.contains(c.stage)) return fmt::format("stage {}", c.stage);
    if (c.resume_stage >= 0 && !declaration.stages.contains(c.resume_stage))
        return fmt::format("stage {}", c.resume_stage);
    if (!declaration.precisions.contains(c.precision))
        return fmt::format("precision {}", name_of(c.precision));
    if (c.transformer && !declaration.trains_transformers) return "transformers";
    for (const std::string& feature : c.features)
        if (!declaration.features.contains(feature)) return fmt::format("feature {}", feature);
    for (const Action& action : c.program)
        if (!declaration.actions.contains(action.kind))
            return fmt::format("action {}", name_of(action.kind));
    if (!declaration.skips_non_finite && !c.injections.empty()) return "gradients not finite";
    for (const auto& [option, value] : c.options)
        if (!declaration.options.contains(option)) return fmt::format("option {}", option);
    return {};
}

Declaration declares_nothing(std::string name) {
    Declaration declaration;
    declaration.name = std::move(name);
    declaration.undeclared = true;
    declaration.most_ranks = 4;
    declaration.stages = {0, 1, 2, 3};
    declaration.precisions = {Precision::fp32, Precision::bf16, Precision::fp16};
    for (std::size_t kind = 0; kind < kActionKinds; ++kind)
        declaration.actions.insert(static_cast<ActionKind>(kind));
    return declaration;
}

std::set<ActionKind> common_actions() {
    return {ActionKind::micro_step, ActionKind::step,   ActionKind::zero_grad,
            ActionKind::evaluate,   ActionKind::reload, ActionKind::read};
}

}  // namespace zeroproof::suites
