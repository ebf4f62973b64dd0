// What the oracle and the papers expect of a case, as files. docs/vectors.md.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "suites/conformance/case.h"

namespace zeroproof::harness {

inline constexpr std::string_view kExpectedSchema = "zeroproof.expected/1";

// NAME.json and NAME.safetensors, for a case that trains. Throws Unwritable.
void write_expected(const std::filesystem::path& folder, const std::string& name,
                    const suites::Case& c);

}  // namespace zeroproof::harness
