#include "harness/cli/report.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "harness/bench/bench_json.h"
#include "harness/process/child.h"
#include "harness/temporary_folder.h"
#include "harness/train/train_json.h"
#include "harness/train/train_json_read.h"
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

struct CheckedRecord {
    bool is_of_training = false;
    std::string text;
};

// Of bench or of train. What is written of it is what has been read: nothing else comes to the
// page.
CheckedRecord checked(const std::string& file) {
    const std::string text = scenarios::read_text_file(file);
    const scenarios::Json document = scenarios::parse_json(text, file);
    if (is_train_json(document)) return {true, train_json(read_train_json(document, file))};
    return {false, to_bench_json(parse_bench_json(text, file))};
}

std::vector<CheckedRecord> checked(const std::vector<std::string>& files) {
    std::vector<CheckedRecord> records;
    for (const std::string& file : files) {
        records.push_back(checked(file));
        if (records.back().is_of_training != records.front().is_of_training)
            throw scenarios::BadInput(fmt::format(
                "{} is a record of `zeroproof {}`, {} one of `zeroproof {}`: a report is of one "
                "kind, so make two",
                files.front(), records.front().is_of_training ? "train" : "bench", file,
                records.back().is_of_training ? "train" : "bench"));
    }
    return records;
}

std::vector<std::string> arguments_for(const ReportOptions& options, const std::string& python,
                                       const fs::path& page, const fs::path& folder) {
    std::vector<std::string> arguments = {python, "-m", "zeroproof_report", page};
    const std::vector<CheckedRecord> records = checked(options.records);
    for (std::size_t i = 0; i < records.size(); ++i) {
        const fs::path copy = folder / fmt::format("{}.json", i);
        write_whole(copy, records[i].text);
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
