#include "harness/subjects/program_part.h"

#include <algorithm>

namespace zeroproof::harness {

bool saves(const suites::Case& c) {
    return c.has_reload() || c.has(suites::ActionKind::save);
}

std::vector<ProgramPart> parts_of(const suites::Case& c, const std::filesystem::path& folder) {
    const auto folder_for = [&](const char* name, bool wanted) -> std::filesystem::path {
        if (!wanted) return {};
        std::filesystem::create_directories(folder / name);
        return folder / name;
    };
    const std::filesystem::path reloaded = folder_for("reload", c.has_reload());
    const std::filesystem::path between = folder_for("between", c.has(suites::ActionKind::save));
    const auto at = std::ranges::find(c.program, suites::ActionKind::reload, &suites::Action::kind);
    const auto reload = static_cast<std::size_t>(at - c.program.begin());
    if (at == c.program.end()) return {{c.ranks, c.stage, 0, reload, {}, {}, between}};
    return {{c.ranks, c.stage, 0, reload, {}, reloaded, between},
            {c.resume_ranks > 0 ? c.resume_ranks : c.ranks,
             c.resume_stage >= 0 ? c.resume_stage : c.stage,
             reload,
             c.program.size(),
             reloaded,
             {},
             between}};
}

}  // namespace zeroproof::harness
