// The command line.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <string>

#include "harness/cli/doctor.h"
#include "harness/cli/verify.h"
#include "harness/mutants/command.h"
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

void add_verify(CLI::App& app, harness::VerifyOptions& options, int& code) {
    CLI::App* verify = app.add_subcommand(
        "verify", "Judge an implementation of ZeRO against plain data-parallel Adam");
    verify->footer(std::string("Example: zeroproof verify reference --stage 2 --ranks 4 "
                               "--json record.json\n") +
                   kExitCodes);
    verify->add_option("subject", options.subject, "What to judge")
        ->capture_default_str()
        ->type_name("SUBJECT");
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
    verify->add_option("--seed", options.seed, "Other gradients and delays");
    verify->add_option("--jobs", options.jobs, "Cases at a time; as many as processors by default")
        ->check(CLI::Range(1, 1024));
    verify->add_option("--json", options.json_file, "Write the record")->type_name("FILE");
    verify->add_option("--junit", options.junit_file, "Write JUnit XML")->type_name("FILE");
    verify->add_option("--csv", options.csv_file, "Write a row per case and clause")
        ->type_name("FILE");
    verify->add_option("--markdown", options.markdown_file, "Write the summary as Markdown")
        ->type_name("FILE");
    verify->add_option("--progress", options.progress, "A line of progress on the terminal")
        ->capture_default_str()
        ->check(CLI::IsMember({"auto", "always", "never"}));
    verify->add_flag("--stop-at-first-failure", options.stop_at_first_failure,
                     "End with the first case that fails");
    verify->callback([&] { code = harness::verify(options); });
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
    mutants->add_flag("--keep", options.keep, "Keep the folder with the mutated sources");
    mutants->callback([&] { code = harness::mutants_command(options); });
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
    bool markdown = false;
    std::string clause;
    harness::MutantOptions mutants;
    add_verify(app, verify, code);
    add_clauses(app, markdown);
    add_explain(app, clause);
    add_mutants(app, mutants, code);
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
    } catch (const std::exception& error) {
        fmt::print(stderr, "zeroproof: a fault of the harness: {}\n", error.what());
        return kHarnessFault;
    }
}
