#include "suites/conformance/subject.h"

#include <fmt/format.h>

namespace zeroproof::suites {

std::string outside_declaration(const Case& c, const Declaration& declaration) {
    if (!declaration.stages.contains(c.stage)) return fmt::format("stage {}", c.stage);
    if (c.resume_stage >= 0 && !declaration.stages.contains(c.resume_stage))
        return fmt::format("stage {}", c.resume_stage);
    if (!declaration.precisions.contains(c.precision))
        return fmt::format("precision {}", name_of(c.precision));
    for (const std::string& feature : c.features)
        if (!declaration.features.contains(feature)) return fmt::format("feature {}", feature);
    return {};
}

}  // namespace zeroproof::suites
