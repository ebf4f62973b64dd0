// From JSON to a declaration.
#pragma once

#include <string>
#include <string_view>

#include "suites/conformance/declaration.h"

namespace zeroproof::suites {

// An object whose keys are those that docs/declarations.md lists. Throws BadInput.
Declaration read_declaration(std::string_view text, const std::string& file);

}  // namespace zeroproof::suites
