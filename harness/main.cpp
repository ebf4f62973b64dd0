// The command line.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <exception>
#include <string>

#include "harness/cli/adapters.h"
#include "harness/cli/doctor.h"
#include "harness/cli/fuzz.h"
#include "harness/cli/serve.h"
#include "harness/cli/serve_plugin.h"
#include "harness/cli/vectors.h"
#include "harness/cli/verify.h"
#include "harness/mutants/command.h"
#include "harness/plugin/library.h"
#include "harness/version.h"
#include "harness/writers/writer.h"
#include "suites/conformance/clause_document.h"
#include "suites/conformance/json_reader.h"

namespace {

using namespace zeroproof;

constexpr int kUsage = 2;
constexpr int kHarnessFault = 5;

constexpr const char* kExitCodes =
    "Exit codes: 0 conforms, 1 violation, 2 usage, 3 inconclusive (nothing failed, but something "
    "was\n"
    "not exercised), 4 the subject failed to run, 5 a fault of the harness.";

// What names the subject of a run.
void add_subject(CLI::App* command, harness::VerifyOptions& options) {
    command
        ->add_option("subject", options.subject,
                     "What to judge: reference, a known implementation, or the path of an engine, "
                     "./engine.so; docs/plugin.md")
        ->capture_default_str()
        ->type_name("SUBJECT");
    command
        ->add_option("--run", options.run_command,
                     "Judge what this command runs: {ranks}, {cases} and {results} are replaced; "
                     "docs/protocol.md")
        ->type_name("COMMAND");
    command
        ->add_option("--declaration", options.declaration_file,
                     "What the subject of --run says of itself; docs/declarations.md")
        ->type_name("FILE");
    command
        ->add_option("--python", options.python,
                     "Interpreter of the subjects in Python; by default $ZEROPROOF_PYTHON, else "
                     "that which ci/setup --adapters made, else python3")
        ->type_name("FILE");
    command->add_flag("--any-version", options.any_version,
                      "Judge another version than the declaration is for");
}

// Views of the record; `options` has a name of a file for each.
template <typename Options>
void add_reports(CLI::App* command, Options& options) {
    command->add_option("--json", options.json_file, "Write the record")->type_name("FILE");
    command->add_option("--junit", options.junit_file, "Write JUnit XML")->type_name("FILE");
    command->add_option("--csv", options.csv_file, "Write a row per case and clause")
        ->type_name("FILE");
    command->add_option("--markdown", options.markdown_file, "Write the summary as Markdown")
        ->type_name("FILE");
}

void add_verify(CLI::App& app, harness::VerifyOptions& options, int& code) {
    CLI::App* verify = app.add_subcommand(
        "verify", "Judge an implementation of ZeRO against plain data-parallel Adam");
    verify->footer(std::string("Example: zeroproof verify reference --stage 2 --ranks 4 "
                               "--json record.json\n") +
                   kExitCodes);
    add_subject(verify, options);
    verify
        ->add_option("--sample", options.sample,
                     "At most so many cases of each family, spread evenly over it")
        ->check(CLI::Range(1, 100000));
    verify->add_option("--stage", options.selection.stages, "Only these stages, as 1,2,3")
        ->delimiter(',')
        ->check(CLI::Range(0, 3));
    verify->add_option("--ranks", options.selection.ranks, "Only these numbers of ranks, as 2,4")
        ->delimiter(',')
        ->check(CLI::Range(1, 64));
    verify
        ->add_option("--filter", options.selection.filters,
                     "Only cases whose id holds this text or matches this pattern (* ? [])")
        ->type_name("PATTERN");
    verify
        ->add_option("--clause", options.clauses, "Only these clauses, by name, pattern or a part")
        ->type_name("NAME");
    verify
        ->add_option(
            "--cases", options.case_files,
            "Families of cases in place of the built-in ones; docs/cases.md has the format")
        ->type_name("FILE");
    verify->add_flag("--list", options.list, "List the cases and how many clauses judge each");
    verify
        ->add_option("--expect", options.expect_file,
                     "Known failures, each with a reason; strict: what passes must not stand there")
        ->type_name("FILE");
    verify
        ->add_option("--timeout", options.timeout_seconds,
                     "Seconds that a rank may wait for another")
        ->capture_default_str()
        ->check(CLI::Range(1, 86400));
    verify->add_option("--seed", options.seed, "Other gradients and delays")
        ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{INT64_MAX}));
    verify->add_option("--jobs", options.jobs, "Cases at a time; as many as processors by default")
        ->check(CLI::Range(1, 1024));
    add_reports(verify, options);
    verify->add_option("--progress", options.progress, "A line of progress on the terminal")
        ->capture_default_str()
        ->check(CLI::IsMember({"auto", "always", "never"}));
    verify->add_flag("--stop-at-first-failure", options.stop_at_first_failure,
                     "End with the first case that fails");
    verify->callback([&] { code = harness::verify(options); });
}

void add_fuzz(CLI::App& app, harness::FuzzCommand& options, int& code) {
    CLI::App* fuzz = app.add_subcommand(
        "fuzz", "Run random programs until the time is up, and shrink what fails");
    fuzz->footer(
        "Example: zeroproof fuzz reference --seconds 60 --seed 7 --save findings\n"
        "Exit codes: 0 nothing found, 1 something, 2 usage, 4 the subject could not run, 5 a "
        "fault of\nthe harness.");
    add_subject(fuzz, options.subject);
    fuzz->add_option("--seconds", options.seconds, "For so long; shrinking may take some more")
        ->capture_default_str()
        ->check(CLI::Range(0.1, 1e6));
    fuzz->add_option("--seed", options.seed, "Other programs")->capture_default_str();
    fuzz->add_option("--only", options.only, "One program of the seed, by its number")
        ->type_name("NUMBER");
    fuzz->add_option("--stage", options.stages, "Only these stages, as 1,2,3")
        ->delimiter(',')
        ->check(CLI::Range(0, 3));
    fuzz->add_option("--ranks", options.ranks, "Only these numbers of ranks, as 2,4")
        ->delimiter(',')
        ->check(CLI::Range(1, 64));
    fuzz->add_option("--timeout", options.timeout_seconds,
                     "Seconds that a rank may wait for another")
        ->capture_default_str()
        ->check(CLI::Range(1, 86400));
    fuzz->add_option("--jobs", options.jobs, "Programs at a time; as many as processors by default")
        ->check(CLI::Range(1, 1024));
    fuzz->add_flag("--stop-at-first", options.stop_at_first,
                   "Search no further than the first failure");
    fuzz->add_flag("--no-shrink", options.no_shrink, "Leave failing programs as they are");
    fuzz->add_option("--save", options.save_folder,
                     "A folder for a family of cases of each group of failures")
        ->type_name("DIR");
    fuzz->add_option("--json", options.json_file, "Write the record")->type_name("FILE");
    fuzz->add_option("--progress", options.progress, "A line of progress on the terminal")
        ->capture_default_str()
        ->check(CLI::IsMember({"auto", "always", "never"}));
    fuzz->callback([&] { code = harness::fuzz_command(options); });
}

void add_adapters(CLI::App& app, std::string& python, int& code) {
    CLI::App* adapters =
        app.add_subcommand("adapters", "The implementations in Python that can be judged by name");
    adapters->require_subcommand(1);
    adapters->add_subcommand("list", "Their names, and the versions that are declared")
        ->callback([&] { harness::list_adapters(); });
    CLI::App* build = adapters->add_subcommand(
        "build", "Build what observes torch's collectives, before its first use does");
    build->footer("Example: zeroproof adapters build --python ~/venv/bin/python");
    build->add_option("--python", python, "Interpreter that has torch")->type_name("FILE");
    build->callback([&] { code = harness::build_adapters(python); });
}

void add_clauses(CLI::App& app, bool& markdown) {
    CLI::App* clauses = app.add_subcommand("clauses", "List what is promised, one line a clause");
    clauses->add_flag("--markdown", markdown, "The whole document, as docs/clauses.md");
    clauses->footer("Example: zeroproof clauses --markdown > docs/clauses.md");
    clauses->callback([&] {
        if (markdown) {
            fmt::print("{}", suites::clauses_markdown());
            return;
        }
        for (const suites::Clause& clause : suites::all_clauses())
            fmt::print("{:<24} {}\n", clause.name, clause.sentence);
    });
}

void add_explain(CLI::App& app, std::string& name) {
    CLI::App* explain = app.add_subcommand("explain", "Tell all about one clause");
    explain->footer("Example: zeroproof explain GRADIENT.MEAN");
    explain->add_option("clause", name, "Its name")->required()->type_name("CLAUSE");
    explain->callback([&] {
        for (const suites::Clause* clause : harness::select_clauses({name}))
            fmt::print("{}", suites::explain(*clause));
    });
}

void add_mutants(CLI::App& app, harness::MutantOptions& options, int& code) {
    CLI::App* mutants = app.add_subcommand(
        "mutants", "Show that the suite can fail: break the reference, line by line");
    mutants->footer(
        "Example: zeroproof mutants --filter 'FC01*'\n"
        "Exit codes: 0 every mutant is killed by the clause that it names, 1 some are not, 2 "
        "usage, "
        "5 the\nbuild tree cannot be used.");
    mutants
        ->add_option("--catalogue", options.catalogues,
                     "Mutants in place of the built-in ones; CONTRIBUTING.md has the format")
        ->type_name("FILE");
    mutants
        ->add_option("--filter", options.filter,
                     "Only mutants whose name, class or clause holds this text or matches")
        ->type_name("PATTERN");
    mutants
        ->add_option("--jobs", options.jobs, "Mutants at a time; as many as processors by default")
        ->check(CLI::Range(1, 1024));
    mutants->add_option("--json", options.json, "Write the score and every result")
        ->type_name("FILE");
    mutants
        ->add_option("--fuzz", options.fuzz_seconds,
                     "Search with random programs for so many seconds each, in place of the cases")
        ->type_name("SECONDS")
        ->check(CLI::Range(1, 86400));
    mutants->add_option("--seed", options.seed, "Of the random programs")->capture_default_str();
    mutants->add_option("--sample", options.sample, "At most so many, spread over the catalogue")
        ->check(CLI::Range(1, 100000));
    mutants->add_flag("--keep", options.keep, "Keep the folder with the mutated sources");
    mutants->callback([&] { code = harness::mutants_command(options); });
}

void add_vectors(CLI::App& app, harness::VectorsExportOptions& write,
                 harness::VectorsCheckOptions& check, int& code) {
    CLI::App* vectors =
        app.add_subcommand("vectors", "Cases with what is expected of them, as files");
    vectors->require_subcommand(1);
    CLI::App* exporting =
        vectors->add_subcommand("export", "Write vectors into a folder; docs/vectors.md");
    exporting->footer("Example: zeroproof vectors export my-vectors --stage 2 --ranks 2,3");
    exporting->add_option("folder", write.folder, "Where")->required()->type_name("DIR");
    exporting->add_option("--stage", write.selection.stages, "Only these stages, as 1,2,3")
        ->delimiter(',')
        ->check(CLI::Range(0, 3));
    exporting->add_option("--ranks", write.selection.ranks, "Only these numbers of ranks, as 2,4")
        ->delimiter(',')
        ->check(CLI::Range(1, 64));
    exporting
        ->add_option("--filter", write.selection.filters,
                     "Only cases whose id holds this text or matches this pattern (* ? [])")
        ->type_name("PATTERN");
    exporting
        ->add_option("--sample", write.sample,
                     "At most so many cases of each family, spread evenly over it")
        ->check(CLI::Range(1, 100000));
    exporting
        ->add_option("--ids", write.ids_file,
                     "The cases that stand in this file, an id a line, and no others")
        ->excludes("--stage", "--ranks", "--filter", "--sample")
        ->type_name("FILE");
    exporting->callback([&] { code = harness::export_vectors_command(write); });

    CLI::App* checking = vectors->add_subcommand(
        "check", "Judge the results that an implementation has left behind");
    checking->footer(std::string("Example: zeroproof vectors check suites/vectors my-results\n") +
                     kExitCodes);
    checking->add_option("folder", check.folder, "The vectors")->required()->type_name("DIR");
    checking->add_option("results", check.results, "The results")->required()->type_name("RESULTS");
    checking
        ->add_option("--declaration", check.declaration_file,
                     "What the implementation says of itself; docs/declarations.md")
        ->type_name("FILE");
    checking->add_flag("--any-version", check.any_version,
                       "Judge another version than the declaration is for");
    checking
        ->add_option("--filter", check.filters,
                     "Only vectors whose id holds this text or matches this pattern (* ? [])")
        ->type_name("PATTERN");
    checking
        ->add_option("--clause", check.clauses, "Only these clauses, by name, pattern or a part")
        ->type_name("NAME");
    checking->add_option("--expect", check.expect_file, "Known failures, each with a reason")
        ->type_name("FILE");
    add_reports(checking, check);
    checking->callback([&] { code = harness::check_vectors_command(check); });
}

// The reference as a child that speaks the process protocol.
struct ServeCommand {
    std::string subject;
    std::string cases;
    std::string results;
};
void add_serve(CLI::App& app, ServeCommand& options, int& code) {
    CLI::App* serve = app.add_subcommand(
        "serve", "Run cases from files on the reference, as the commands of --run do");
    serve->footer(
        "Example: zeroproof verify --run \"zeroproof serve reference {cases} {results}; : "
        "{ranks}\"");
    serve->add_option("subject", options.subject, "reference")->required();
    serve->add_option("cases", options.cases, "Folder with cases")->required();
    serve->add_option("results", options.results, "Folder for evidence")->required();
    serve->callback(
        [&] { code = harness::serve(options.subject, options.cases, options.results); });
}

// For the child processes of engine plugins. docs/plugin.md.
void add_plugin_commands(CLI::App& app, harness::PluginCommands& plugin, int& code) {
    constexpr const char* kHidden = "";
    CLI::App* describe = app.add_subcommand("describe-plugin", "Print what an engine declares");
    describe->group(kHidden);
    describe->add_option("engine", plugin.engine)->required();
    describe->add_option("output", plugin.output);
    describe->callback([&] { code = harness::describe_plugin(plugin.engine, plugin.output); });
    CLI::App* serve = app.add_subcommand("serve-plugin", "Run cases on an engine");
    serve->group(kHidden);
    serve->add_option("engine", plugin.engine)->required();
    serve->add_option("cases", plugin.cases)->required();
    serve->add_option("results", plugin.results)->required();
    serve->callback(
        [&] { code = harness::serve_plugin(plugin.engine, plugin.cases, plugin.results); });
}

std::string joined(int argc, char** argv) {
    std::string command = "zeroproof";
    for (int i = 1; i < argc; ++i) command += std::string(" ") + argv[i];
    return command;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"Proves implementations of ZeRO right, and measures their memory and traffic."};
    app.require_subcommand(1);
    app.set_help_all_flag("--help-all", "Help of all commands");
    int code = 0;
    harness::VerifyOptions verify;
    verify.command = joined(argc, argv);
    harness::FuzzCommand fuzz;
    fuzz.command = verify.command;
    bool markdown = false;
    std::string clause;
    harness::MutantOptions mutants;
    add_verify(app, verify, code);
    add_fuzz(app, fuzz, code);
    std::string python;
    add_adapters(app, python, code);
    add_clauses(app, markdown);
    add_explain(app, clause);
    add_mutants(app, mutants, code);
    harness::VectorsExportOptions write;
    harness::VectorsCheckOptions check;
    check.command = verify.command;
    add_vectors(app, write, check, code);
    ServeCommand serve;
    add_serve(app, serve, code);
    harness::PluginCommands plugin;
    add_plugin_commands(app, plugin, code);
    app.add_subcommand("doctor", "Say what is on this machine and what is missing")->callback([&] {
        code = harness::doctor();
    });
    app.add_subcommand("version", "Print the version")->callback([] {
        fmt::print("zeroproof {}\n", harness::kVersion);
    });
    try {
        app.parse(argc, argv);
        return code;
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : kUsage;
    } catch (const suites::BadInput& error) {
        fmt::print(stderr, "zeroproof: {}\n", error.what());
        return kUsage;
    } catch (const harness::Unwritable& error) {
        fmt::print(stderr, "zeroproof: {}\n", error.what());
        return kUsage;
    } catch (const harness::UnfitPlugin& error) {
        fmt::print(stderr, "zeroproof: {}\n", error.what());
        return harness::kUnfitPlugin;
    } catch (const std::exception& error) {
        fmt::print(stderr, "zeroproof: a fault of the harness: {}\n", error.what());
        return kHarnessFault;
    }
}
