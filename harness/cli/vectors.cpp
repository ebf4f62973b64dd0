#include "harness/cli/vectors.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <memory>
#include <sstream>

#include "harness/expectations.h"
#include "harness/protocol/evidence_document.h"
#include "harness/run.h"
#include "harness/subjects/recorded_subject.h"
#include "harness/subjects/reference_subject.h"
#include "harness/vectors/sha256.h"
#include "harness/vectors/vectors.h"
#include "harness/writers/text.h"
#include "harness/writers/writer.h"
#include "scenarios/json_reader.h"
#include "suites/conformance/declaration_reader.h"
#include "suites/conformance/family.h"

namespace zeroproof::harness {

namespace {

namespace fs = std::filesystem;
using scenarios::BadInput;

std::vector<std::string> read_ids(const std::string& file, const std::vector<Case>& cases) {
    std::vector<std::string> ids;
    std::istringstream lines(scenarios::read_text_file(file));
    std::size_t number = 0;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        if (line.empty()) continue;
        if (std::ranges::find(cases, line, &Case::id) == cases.end())
            throw BadInput(
                fmt::format("{}: line {}: there is no case '{}'; 'zeroproof verify "
                            "--list' shows all",
                            file, number, printable(line)));
        ids.push_back(std::move(line));
    }
    if (ids.empty()) throw BadInput(fmt::format("{}: names no case", file));
    return ids;
}

// As the results name their subject.
suites::Declaration declares_nothing(const fs::path& results, const Vectors& vectors) {
    for (const VectorLaunch& launch : vectors.index.launches)
        if (const auto ready = read_ready(results / launch.name, 0))
            return suites::declares_nothing(printable(ready->subject));
    return suites::declares_nothing("the results");
}

// All of them, but those that the filters leave out and those outside the declaration, which an
// implementer need not have run.
std::vector<const Case*> chosen_cases(const Vectors& vectors,
                                      const std::vector<std::string>& filters,
                                      const suites::Declaration& declaration) {
    const auto is_asked_for = [&](const Case& c) {
        return filters.empty() || std::ranges::any_of(filters, [&](const std::string& filter) {
                   return filter == c.id || matches_pattern(filter, c.id);
               });
    };
    std::vector<const Case*> chosen;
    for (const RecordedCase& recorded : vectors.cases) {
        const Case& c = *recorded.c;
        if (is_asked_for(c) && outside_declaration(c, declaration).empty() &&
            (c.twin.empty() || outside_declaration(c.twin.front(), declaration).empty()))
            chosen.push_back(&c);
    }
    if (chosen.empty())
        throw BadInput("no vector is left by --filter and what the declaration supports");
    return chosen;
}

}  // namespace

int export_vectors_command(const VectorsExportOptions& options) {
    const std::vector<Case> cases = suites::all_cases();
    Selection selection = options.selection;
    selection.sample = options.sample;
    if (!options.ids_file.empty()) selection = {{}, {}, read_ids(options.ids_file, cases), 0};
    const auto reference = make_reference_subject();
    std::vector<const Case*> chosen = select_cases(cases, selection, reference->declaration());
    std::erase_if(chosen, [](const Case* c) { return !is_vector(*c); });
    if (chosen.empty())
        throw BadInput(
            "no case that trains is left by --stage, --ranks and --filter; 'zeroproof verify "
            "--list' shows all");
    const VectorIndex index = export_vectors(options.folder, chosen);
    std::uint64_t bytes = 0;
    for (const VectorLaunch& launch : index.launches) bytes += launch.cases.bytes;
    for (const Vector& vector : index.vectors)
        for (const VectorFile& file : vector.files) bytes += file.bytes;
    fmt::print("{} in {}, {} of cases, {} KiB\n", counted(index.vectors.size(), "vector"),
               options.folder, counted(index.launches.size(), "folder"), (bytes + 1023) / 1024);
    return 0;
}

int check_vectors_command(const VectorsCheckOptions& options) {
    for (const std::string& file :
         {options.json_file, options.junit_file, options.csv_file, options.markdown_file})
        if (!file.empty()) check_writable(file);
    const Vectors vectors = load_vectors(options.folder);
    if (!fs::is_directory(options.results))
        throw BadInput(fmt::format("{}: is no folder of results", options.results));
    const auto clauses = select_clauses(options.clauses);
    std::vector<Expectation> expectations;
    if (!options.expect_file.empty()) expectations = read_expectations(options.expect_file);

    RecordedOptions recorded;
    recorded.declaration =
        options.declaration_file.empty()
            ? declares_nothing(options.results, vectors)
            : suites::read_declaration(scenarios::read_text_file(options.declaration_file),
                                       options.declaration_file);
    recorded.results = options.results;
    recorded.cases = vectors.cases;
    recorded.any_version = options.any_version;
    const auto subject = make_recorded_subject(std::move(recorded));
    const auto chosen = chosen_cases(vectors, options.filters, subject->declaration());

    Record record;
    record.subject = subject->declaration().name;
    record.command = options.command;
    // Results cannot be run again, but what left them behind can.
    record.subject_argument = "";
    record.rerun_options = " --run COMMAND";
    if (!options.declaration_file.empty())
        record.rerun_options += " --declaration " + shell_quoted(options.declaration_file);
    record.started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
    record.seed = chosen.front()->seed;
    RunOptions run_options;
    run_options.clauses = clauses;
    run_options.timeout = std::chrono::hours(24);  // only files are read
    run(*subject, chosen, run_options, record);
    apply_expectations(expectations, record);

    // Whoever publishes vectors publishes this number with them.
    fmt::print("{} of {}, SHA-256 {}\n\n", counted(chosen.size(), "vector"), options.folder,
               measure_file(options.folder, std::string(kIndexFile)).sha256);
    fmt::print("{}", to_terminal(record, isatty(STDOUT_FILENO) != 0));
    if (!options.json_file.empty()) write_whole(options.json_file, to_json(record));
    if (!options.junit_file.empty()) write_whole(options.junit_file, to_junit(record));
    if (!options.csv_file.empty()) write_whole(options.csv_file, to_csv(record));
    if (!options.markdown_file.empty()) write_whole(options.markdown_file, to_markdown(record));
    return exit_code(record);
}

}  // namespace zeroproof::harness
