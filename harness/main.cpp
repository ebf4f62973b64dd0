// The command line.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <exception>
#include <string>

#include "harness/cli/adapters.h"
#include "harness/cli/bench.h"
#include "harness/cli/compare.h"
#include "harness/cli/doctor.h"
#include "harness/cli/fuzz.h"
#include "harness/cli/lab.h"
#include "harness/cli/report.h"
#include "harness/cli/serve.h"
#include "harness/cli/serve_plugin.h"
#include "harness/cli/train_arguments.h"
#include "harness/cli/vectors.h"
#include "harness/cli/verify.h"
#include "harness/mutants/command.h"
#include "harness/plugin/library.h"
#include "harness/version.h"
#include "harness/writers/writer.h"
#include "reference/checkpoint/checkpoint.h"
#include "scenarios/json_reader.h"
#include "suites/conformance/clause_document.h"

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
    verify
        ->add_option("--algorithms", options.algorithms,
                     "Carry the reference's collectives by sends and receives: ring, recursive, "
                     "hierarchical")
        ->check(CLI::IsMember({"ring", "recursive", "hierarchical"}));
    verify
        ->add_option("--ranks-per-node", options.ranks_per_node,
                     "Of the nodes that --algorithms knows; ranks that it does not divide stand on "
                     "one")
        ->capture_default_str()
        ->check(CLI::Range(1, 64));
    verify
        ->add_option("--backend", options.backend,
                     "What the ranks of the reference are: threads, or processes, as in mpirun -n "
                     "4 zeroproof verify reference --backend mpi")
        ->capture_default_str()
        ->check(CLI::IsMember({"threads", "mpi"}));
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

void add_bench(CLI::App& app, harness::BenchCommand& options, int& code) {
    constexpr bool kPowersOf1024 = false;
    CLI::App* bench = app.add_subcommand(
        "bench", "Time what ZeRO communicates, and count it beside the formulas");
    bench->footer(
        "Examples: zeroproof bench --ranks 4 --ops all_reduce --end 64M\n"
        "          mpirun -n 64 zeroproof bench --stages 0,1,2,3 --params 100M --json bench.json\n"
        "          zeroproof lab run lab-2x2-1g -- zeroproof bench --fit --json bench.json\n"
        "Exit codes: 0 done, 1 a result or a volume is not what it must be, 2 usage, 4 a rank died "
        "or\nwaited in vain, 5 a fault of the harness.");
    bench
        ->add_option("--backend", options.backend,
                     "What carries messages: threads, mpi; auto is mpi under mpirun, else threads")
        ->capture_default_str()
        ->check(CLI::IsMember({"auto", "threads", "mpi"}));
    bench
        ->add_option("--topology", options.topology,
                     "Where the ranks stand, a file or a known cluster; by default "
                     "$ZEROPROOF_TOPOLOGY, else this machine; docs/topology.md")
        ->type_name("TOPOLOGY");
    bench->add_option("--ranks", options.ranks, "Threads; by default as the topology has, or 4")
        ->check(CLI::Range(1, 1024));
    bench
        ->add_option("--ops", options.ops,
                     "Only these collectives, as all_reduce,all_gather; by default all_reduce, "
                     "reduce_scatter and all_gather, or with --stages none")
        ->delimiter(',');
    bench
        ->add_option("--algorithms", options.algorithms,
                     "native (the backend's own), ring, recursive, hierarchical, or for --ops a "
                     "single algorithm; by default native, ring and, over several nodes, "
                     "hierarchical")
        ->delimiter(',');
    bench->add_option("--begin", options.begin_bytes, "Smallest size, as 4K, 1M, 1G")
        ->capture_default_str()
        ->transform(CLI::AsSizeValue(kPowersOf1024))
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40));
    bench->add_option("--end", options.end_bytes, "Largest size")
        ->capture_default_str()
        ->transform(CLI::AsSizeValue(kPowersOf1024))
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40));
    bench->add_option("--factor", options.factor, "From one size to the next")
        ->capture_default_str()
        ->check(CLI::Range(2, 1024));
    bench->add_option("--dtype", options.type, "Of elements; for --stages fp32, bf16 or fp16")
        ->capture_default_str()
        ->check(CLI::IsMember({"fp32", "bf16", "fp16", "fp64", "int8", "int32", "int64"}));
    bench
        ->add_option("--stages", options.stages,
                     "Time whole steps: 0 is plain data parallelism, 1, 2, 3; by default all, or "
                     "with --ops none")
        ->delimiter(',')
        ->check(CLI::Range(0, 3));
    bench
        ->add_option("--params", options.parameters,
                     "Phi, the model's parameters, as 1000000, 25M (10^6)")
        ->capture_default_str()
        ->transform(CLI::AsSizeValue(!kPowersOf1024))
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40));
    bench->add_option("--units", options.units, "Equal layers that the model has")
        ->capture_default_str()
        ->check(CLI::Range(1, 10000));
    bench->add_option("--micro-steps", options.micro_steps, "Gradient accumulation")
        ->capture_default_str()
        ->check(CLI::Range(1, 1000));
    bench->add_option("--bucket", options.bucket_elements, "Elements of a bucket, as 1M (10^6)")
        ->capture_default_str()
        ->transform(CLI::AsSizeValue(!kPowersOf1024))
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40));
    bench
        ->add_option("--compute-ms", options.compute_ms,
                     "Milliseconds that forward and backward of a micro-step compute, as 0,50")
        ->delimiter(',')
        ->check(CLI::Range(0.0, 1e6));
    bench->add_flag("--no-overlap", options.no_overlap,
                    "Neither reduce gradients during backward nor gather weights ahead");
    bench->add_option("--warmup", options.warm_up, "Iterations that are not timed")
        ->capture_default_str()
        ->check(CLI::Range(0, 1000));
    bench->add_option("--repeat", options.repeats, "Times that are taken of each thing")
        ->capture_default_str()
        ->check(CLI::Range(1, 10000));
    bench
        ->add_option("--min-time", options.least_seconds,
                     "Seconds that a repeat of an operation lasts at least")
        ->capture_default_str()
        ->check(CLI::Range(0.0, 1000.0));
    bench
        ->add_option("--timeout", options.timeout_seconds,
                     "Seconds that a rank may wait for another")
        ->capture_default_str()
        ->check(CLI::Range(1, 86400));
    bench->add_flag("--fit", options.fit,
                    "Fit latency and bandwidth to every other size, and predict the rest");
    bench->add_option("--json", options.json_file, "Write the record, also as it grows")
        ->type_name("FILE");
    bench->add_option("--csv", options.csv_file, "Write a row for each result")->type_name("FILE");
    bench->add_option("--progress", options.progress, "What is being measured, on stderr")
        ->capture_default_str()
        ->check(CLI::IsMember({"auto", "always", "never"}));
    bench->callback([&] { code = harness::bench_command(options); });
}

void add_compare(CLI::App& app, harness::CompareOptions& options, int& code) {
    CLI::App* compare = app.add_subcommand(
        "compare",
        "Say what has become slower or faster beyond the noise from one record to "
        "another");
    compare->footer(
        "Example: zeroproof compare before.json after.json\n"
        "Exit codes: 0 nothing is slower, 1 something is, 2 usage, 3 nothing could be told apart.");
    compare->add_option("old", options.older, "A record of bench --json")
        ->required()
        ->type_name("OLD");
    compare->add_option("new", options.newer, "One of the same measurements, later")
        ->required()
        ->type_name("NEW");
    compare
        ->add_option("--level", options.level,
                     "Probability of a false alarm among all that is compared, at most")
        ->capture_default_str()
        ->check(CLI::Range(1e-9, 0.5));
    compare->add_flag("--any-machine", options.any_machine,
                      "Also if backends, topologies or processors differ");
    compare->callback([&] { code = harness::compare_command(options); });
}

void add_report(CLI::App& app, harness::ReportOptions& options, int& code) {
    CLI::App* report = app.add_subcommand(
        "report", "Draw records of bench, or of train: one HTML page, with its figures");
    report->footer(
        "Examples: zeroproof report bench-1x4.json bench-2x2.json --output report.html\n"
        "          zeroproof report stage0.json stage1.json stage2.json stage3.json");
    report->add_option("record", options.records, "Records of bench --json, or of train --json")
        ->required()
        ->type_name("RECORD");
    report
        ->add_option("--output", options.output,
                     "The page, as FILE.html, or a folder for it; figures go into a folder beside "
                     "it")
        ->capture_default_str()
        ->type_name("PATH");
    report
        ->add_option("--python", options.python,
                     "Interpreter with matplotlib and jinja2; by default $ZEROPROOF_PYTHON, else "
                     "build/reports/bin/python if it is there, else python3")
        ->type_name("FILE");
    report->callback([&] { code = harness::report_command(options); });
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
    mutants
        ->add_option("--seed", options.seed,
                     "Of the random programs; and which mutants --one-a-clause takes")
        ->capture_default_str();
    mutants->add_flag("--one-a-clause", options.one_a_clause,
                      "Of the mutants that the same clause is to kill, only one");
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

// A cluster of network namespaces on this machine. docs/topology.md.
void add_lab(CLI::App& app, harness::LabCommand& options, int& code) {
    CLI::App* lab = app.add_subcommand(
        "lab", "Run a command on a cluster of network namespaces with shaped links");
    lab->require_subcommand(1);
    CLI::App* run = lab->add_subcommand(
        "run", "Make a lab, run an MPI program on it, and take it away again; takes root");
    run->footer(
        "Example: zeroproof lab run lab-2x2-1g -- zeroproof bench\n"
        "Exit codes: that of mpirun, 128 and the number of a signal that ended it, 2 usage or not\n"
        "permitted, 5 the lab could not be made or taken away.");
    run->add_option("cluster", options.cluster, "A name of `zeroproof clusters`, or a file")
        ->required()
        ->type_name("CLUSTER");
    run->add_option("command", options.command, "What each rank runs, after --; it has no input")
        ->required()
        ->type_name("COMMAND");
    run->add_option("--name", options.name, "Of the lab; zp- and a number by default");
    run->add_option("--bandwidth-gbit-per-s", options.overrides.bandwidth_gbit_per_s,
                    "Between nodes, in place of the cluster's");
    run->add_option("--latency-us", options.overrides.latency_us,
                    "Of each packet between nodes, in place of the cluster's; 0 adds none")
        ->check(CLI::NonNegativeNumber);
    run->add_flag("--dry-run", options.dry_run, "Print the commands and run none");
    run->callback([&] { code = harness::lab_run(options); });
    lab->add_subcommand("list", "List the labs that are there, alive or left over")->callback([&] {
        code = harness::lab_list();
    });
    CLI::App* clean =
        lab->add_subcommand("clean", "Remove what labs have left whose owner is gone");
    clean->add_option("name", options.name, "Only of this one")->type_name("LAB");
    clean->add_flag("--dry-run", options.dry_run, "Only say what that is");
    clean->callback([&] { code = harness::lab_clean(options.name, options.dry_run); });

    app.add_subcommand("clusters", "List the clusters that have names")->callback([&] {
        code = harness::list_clusters();
    });
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
    harness::BenchCommand bench;
    bench.command = verify.command;
    bool markdown = false;
    std::string clause;
    harness::MutantOptions mutants;
    add_verify(app, verify, code);
    add_fuzz(app, fuzz, code);
    add_bench(app, bench, code);
    harness::TrainCommand train;
    train.command = verify.command;
    harness::add_train(app, train, code);
    harness::CompareOptions compare;
    add_compare(app, compare, code);
    harness::ReportOptions report;
    add_report(app, report, code);
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
    harness::LabCommand lab;
    add_lab(app, lab, code);
    app.add_subcommand("doctor", "Say what is on this machine and what is missing")->callback([&] {
        code = harness::doctor();
    });
    app.add_subcommand("version", "Print the version")->callback([] {
        fmt::print("zeroproof {}\n", harness::kVersion);
    });
    try {
        // What follows is for a shell; no word of it is an option.
        if (argc > 1 && std::string(argv[1]) == "lab-shell")
            return harness::lab_shell({argv + 2, argv + argc});
        app.parse(argc, argv);
        return code;
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : kUsage;
    } catch (const scenarios::BadInput& error) {
        fmt::print(stderr, "zeroproof: {}\n", error.what());
        return kUsage;
    } catch (const reference::BadCheckpoint& error) {
        fmt::print(stderr, "zeroproof: {}\n", error.what());
        return kUsage;
    } catch (const harness::LabRefused& error) {
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
