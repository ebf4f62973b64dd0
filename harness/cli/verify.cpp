#include "harness/cli/verify.h"

#include <cstdlib>

#include "harness/cli/judged_run.h"
#include "harness/cli/verify_over_mpi.h"
#include "harness/subjects/plugin_subject.h"
#include "harness/subjects/process_subject.h"
#include "harness/subjects/python_subject.h"
#include "harness/subjects/reference_subject.h"
#include "scenarios/json_reader.h"
#include "suites/conformance/declaration_reader.h"

namespace zeroproof::harness {

namespace {

std::unique_ptr<suites::Subject> make_command_subject(const VerifyOptions& options,
                                                      const Progress& progress) {
    ProcessOptions process;
    process.declaration = suites::declares_nothing("the command");
    if (!options.declaration_file.empty())
        process.declaration = suites::read_declaration(
            scenarios::read_text_file(options.declaration_file), options.declaration_file);
    process.any_version = options.any_version;
    process.progress = progress;
    const std::string command = options.run_command;
    (void)shell_launch(command, 1, "", "");  // speaks up before any case is written
    process.launch = [command](int ranks, const std::string& cases, const std::string& results) {
        return shell_launch(command, ranks, cases, results);
    };
    return make_process_subject(std::move(process));
}

}  // namespace

std::unique_ptr<suites::Subject> make_subject(const VerifyOptions& options,
                                              const Progress& progress) {
    if (!options.run_command.empty()) return make_command_subject(options, progress);
    if (!options.declaration_file.empty())
        throw scenarios::BadInput("--declaration is for --run: other subjects have theirs");
    Carrier carrier{.ranks_per_node = options.ranks_per_node};
    if (!options.algorithms.empty()) {
        carrier.algorithms = collectives::find_algorithm_set(options.algorithms);
        if (options.subject != "reference" || options.backend != "threads")
            throw scenarios::BadInput("--algorithms is for the reference on threads");
    }
    if (options.subject == "reference") return make_reference_subject(carrier);
    if (names_plugin(options.subject)) return make_plugin_subject(options.subject, progress);
    return make_python_subject(options.subject, {options.python, options.any_version, progress});
}

int verify(const VerifyOptions& options) {
    if (options.backend == "mpi") return verify_over_mpi(options);
    ProgressLine line(options.progress);
    const auto subject = make_subject(options, [&](const std::string& what) { line.tell(what); });
    const Chosen chosen = choose_cases(options, subject->declaration());
    demand_cases(chosen);
    if (options.list) return list_cases(chosen);
    return judge_and_report(options, *subject, chosen, line, [](int code) { std::_Exit(code); });
}

}  // namespace zeroproof::harness
