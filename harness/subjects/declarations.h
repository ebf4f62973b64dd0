// The declarations of known implementations, from scenarios/declarations.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "suites/conformance/declaration.h"

namespace zeroproof::harness {

struct DeclarationFile {
    std::string_view name;
    std::string_view text;
};

// Put into the program when it is built, by name.
const std::vector<DeclarationFile>& declaration_files();

// The subjects that they are of.
std::vector<std::string> declared_subjects();
// Throws scenarios::BadInput, with the names that are known, if there is none.
suites::Declaration declaration_of(const std::string& subject);

}  // namespace zeroproof::harness
