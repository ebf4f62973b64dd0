#include "harness/option_cases.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "suites/conformance/family.h"

namespace zeroproof::harness {
namespace {

TEST(OptionCases, SetOneOptionAtATimeInTheStagesThatHaveIt) {
    const auto cases = suites::all_cases();
    suites::Declaration declaration;
    declaration.options["overlap"] = {{"true", "false"}, {1, 2}};
    declaration.options["cap"] = {{"0", "1", "2"}, {3}};
    const auto with_options = option_cases(cases, declaration);
    const auto in_stage = [&](int stage) {
        return std::ranges::count(with_options, stage, &suites::Case::stage);
    };
    EXPECT_EQ(in_stage(0), 0);
    EXPECT_EQ(in_stage(1), in_stage(2));
    EXPECT_EQ(2 * in_stage(1), in_stage(3));
    for (const suites::Case& c : with_options) {
        ASSERT_EQ(c.options.size(), 1u);
        const auto& [name, value] = *c.options.begin();
        EXPECT_TRUE(c.id.ends_with("," + name + "=" + value)) << c.id;
        EXPECT_NE(value, declaration.options.at(name).values.front());
    }
}

}  // namespace
}  // namespace zeroproof::harness
