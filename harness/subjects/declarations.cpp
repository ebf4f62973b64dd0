#include "harness/subjects/declarations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scenarios/json_reader.h"
#include "suites/conformance/declaration_reader.h"

namespace zeroproof::harness {

namespace {

std::string subject_of(const DeclarationFile& file) {
    return std::string(file.name.substr(0, file.name.rfind('.')));
}

}  // namespace

std::vector<std::string> declared_subjects() {
    std::vector<std::string> subjects;
    for (const DeclarationFile& file : declaration_files()) subjects.push_back(subject_of(file));
    return subjects;
}

suites::Declaration declaration_of(const std::string& subject) {
    for (const DeclarationFile& file : declaration_files())
        if (subject_of(file) == subject)
            return suites::read_declaration(file.text, std::string(file.name));
    throw scenarios::BadInput(fmt::format(
        "unknown subject '{}'; known are: reference, {}; any other is judged with --run", subject,
        fmt::join(declared_subjects(), ", ")));
}

}  // namespace zeroproof::harness
