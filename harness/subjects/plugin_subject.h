// A subject that is a shared object with an engine. docs/plugin.md.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "suites/conformance/subject.h"

namespace zeroproof::harness {

// Whether a subject is named by the path of a shared object: it holds a '/' or ends in ".so".
bool names_plugin(const std::string& subject);

// The engine runs in child processes of this program alone. Throws scenarios::BadInput if there is
// no such file, and UnfitPlugin if it cannot be judged.
std::unique_ptr<suites::Subject> make_plugin_subject(
    const std::string& path, std::function<void(const std::string& what)> progress);

}  // namespace zeroproof::harness
