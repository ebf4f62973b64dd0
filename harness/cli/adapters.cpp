#include "harness/cli/adapters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>

#include "harness/subjects/declarations.h"
#include "harness/subjects/python_subject.h"
#include "harness/writers/text.h"

namespace zeroproof::harness {

void list_adapters() {
    for (const std::string& subject : declared_subjects()) {
        const suites::Declaration declaration = declaration_of(subject);
        fmt::print("{:<12} {:<8} stages {}\n", subject, declaration.version,
                   fmt::join(declaration.stages, ", "));
    }
}

int build_adapters(const std::string& python) {
    const std::string interpreter = python_interpreter(python);
    const std::string folder = std::filesystem::path(interpreter).parent_path();
    // Its ninja stands beside it.
    const std::string command =
        fmt::format("{}PYTHONPATH={} {} -m zeroproof_adapter.observer",
                    folder.empty() ? "" : fmt::format("PATH={}:\"$PATH\" ", shell_quoted(folder)),
                    shell_quoted(adapter_folder()), shell_quoted(interpreter));
    const int status = std::system(command.c_str());
    if (status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
    fmt::print(stderr,
               "zeroproof: {} could not build the observing backend; ci/setup --adapters makes an "
               "environment that can, or name one with --python\n",
               interpreter);
    return 4;
}

}  // namespace zeroproof::harness
