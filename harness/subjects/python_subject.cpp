#include "harness/subjects/python_subject.h"

#include <cstdlib>
#include <filesystem>

#include "harness/subjects/declarations.h"
#include "harness/subjects/process_subject.h"

namespace zeroproof::harness {

std::string python_interpreter(const std::string& wanted) {
    if (!wanted.empty()) return wanted;
    if (const char* python = std::getenv("ZEROPROOF_PYTHON"); python != nullptr && *python != '\0')
        return python;
    const std::filesystem::path made =
        std::filesystem::path(ZEROPROOF_BINARY_DIR).parent_path() / "adapters" / "bin" / "python";
    std::error_code ignored;
    return std::filesystem::exists(made, ignored) ? made.string() : "python3";
}

std::string adapter_folder() {
    return std::string(ZEROPROOF_SOURCE_DIR) + "/harness/adapters";
}

std::unique_ptr<suites::Subject> make_python_subject(const std::string& name,
                                                     const PythonOptions& options) {
    ProcessOptions process;
    process.declaration = declaration_of(name);
    process.any_version = options.any_version;
    process.progress = options.progress;
    process.if_it_cannot_start =
        "ci/setup --adapters makes an environment that has all it needs, and --python FILE takes "
        "another";
    const std::string python = python_interpreter(options.python);
    process.launch = [name, python](int ranks, const std::string& cases,
                                    const std::string& results) -> Launch {
        std::string path = "PYTHONPATH=" + adapter_folder();
        if (const char* present = std::getenv("PYTHONPATH"); present != nullptr)
            path += std::string(":") + present;
        return {{python, "-m", "zeroproof_adapter.launch", name, "--ranks", std::to_string(ranks),
                 cases, results},
                {path}};
    };
    return make_process_subject(std::move(process));
}

}  // namespace zeroproof::harness
