// Known implementations in Python, driven by the adapters of this project.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "suites/conformance/subject.h"

namespace zeroproof::harness {

// The interpreter to use: `wanted`, else $ZEROPROOF_PYTHON, else that which ci/setup --adapters has
// made, else python3.
std::string python_interpreter(const std::string& wanted);

// Where the package zeroproof_adapter lies.
std::string adapter_folder();

struct PythonOptions {
    std::string python;  // empty: python_interpreter decides
    bool any_version = false;
    std::function<void(const std::string& what)> progress;
};

// One of declared_subjects(). Throws scenarios::BadInput for others.
std::unique_ptr<suites::Subject> make_python_subject(const std::string& name,
                                                     const PythonOptions& options);

}  // namespace zeroproof::harness
