#include "harness/option_cases.h"

#include <fmt/format.h>

namespace zeroproof::harness {

std::vector<suites::Case> option_cases(const std::vector<suites::Case>& cases,
                                       const suites::Declaration& declaration) {
    std::vector<suites::Case> with_options;
    for (const suites::Case& c : cases) {
        if (c.family != "options") continue;
        for (const auto& [name, option] : declaration.options) {
            if (!option.stages.contains(c.stage)) continue;
            for (std::size_t value = 1; value < option.values.size(); ++value) {
                suites::Case changed = c;
                changed.options[name] = option.values[value];
                changed.id += fmt::format(",{}={}", name, option.values[value]);
                with_options.push_back(std::move(changed));
            }
        }
    }
    return with_options;
}

}  // namespace zeroproof::harness
