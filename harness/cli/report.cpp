#include "harness/cli/report.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "harness/bench/bench_json.h"
#include "harness/process/child.h"
#include "harness/temporary_folder.h"
#include "harness/writers/text.h"
#include "harness/writers/writer.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {

namespace {

namespace fs = std::filesystem;

// What zeroproof_report ends with where a package is missing.
constexpr int kPackageMissing = 3;
constexpr const char* kRemedy =
    "the report takes Python with matplotlib and jinja2: `ci/setup --reports` installs the "
    "packages python3-matplotlib and python3-jinja2, and --python FILE takes another interpreter";

std::string interpreter(const std::string& wanted) {
    if (!wanted.empty()) return wanted;
    if (const char* python = std::getenv("ZEROPROOF_PYTHON"); python != nullptr && *python != '\0')
        return python;
    const fs::path made = fs::path(ZEROPROOF_BINARY_DIR).parent_path() / "reports/bin/python";
    std::error_code ignored;
    return fs::exists(made, ignored) ? made.string() : "python3";
}

fs::path page_of(const std::string& output) {
    const fs::path path = fs::absolute(output);
    if (path.extension() == ".html") return path;
    std::error_code error;
    fs::create_directories(path, error);
    if (error) throw Unwritable(fmt::format("cannot write {}: {}", output, error.message()));
    return path / "report.html";
}

std::string python_path() {
    std::string path = "PYTHONPATH=" ZEROPROOF_SOURCE_DIR "/reports";
    if (const char* present = std::getenv("PYTHONPATH"); present != nullptr)
        path += std::string(":") + present;
    return path;
}

// What is written of the records is what has been read of them: nothing else comes to the page.
std::vector<std::string> arguments_for(const ReportOptions& options, const std::string& python,
                                       const fs::path& page, const fs::path& folder) {
    std::vector<std::string> arguments = {python, "-m", "zeroproof_report", page};
    for (std::size_t i = 0; i < options.records.size(); ++i) {
        const fs::path copy = folder / fmt::format("{}.json", i);
        write_whole(copy, to_bench_json(read_bench_json(options.records[i])));
        // As one word: a name may begin with a dash.
        arguments.push_back("--record=" + copy.string());
        arguments.push_back("--name=" + printable(options.records[i]));
    }
    return arguments;
}

ChildEnd run_python(const std::vector<std::string>& arguments, const fs::path& folder,
                    const fs::path& output) {
    Child child(arguments, folder, output, {python_path()});
    while (true) {
        if (const auto end = child.poll()) return *end;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

}  // namespace

int report_command(const ReportOptions& options) {
    const ChildGuard guard;
    const TemporaryFolder folder;
    const fs::path said = folder.path() / "output.txt";
    const std::string python = interpreter(options.python);
    const std::vector<std::string> arguments =
        arguments_for(options, python, page_of(options.output), folder.path());
    check_writable(page_of(options.output));
    ChildEnd end;
    try {
        end = run_python(arguments, folder.path(), said);
    } catch (const std::system_error& error) {
        throw scenarios::BadInput(
            fmt::format("cannot run {}: {}; {}", python, error.code().message(), kRemedy));
    }
    const std::string output = scenarios::read_text_file(said);
    if (end.exited_with(kPackageMissing))
        throw scenarios::BadInput(fmt::format("{}: {}; {}", python, printable(output), kRemedy));
    if (!end.exited_with(0))
        throw std::runtime_error(
            fmt::format("{} has made no report:\n{}", python, printable_lines(output)));
    fmt::print("{}", printable_lines(output));
    return 0;
}

}  // namespace zeroproof::harness
