#include "harness/cli/verify_over_mpi.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>
#include <span>

#include "harness/cli/judged_run.h"
#include "harness/subjects/mpi_reference.h"
#include "harness/vectors/sha256.h"
#include "harness/version.h"
#include "harness/writers/text.h"
#include "harness/writers/writer.h"
#include "scenarios/json_reader.h"
#include "suites/conformance/case_writer.h"

namespace zeroproof::harness {

namespace {

// What the ranks of a job must have in common, by the name of the option.
scenarios::Json agreed_options(const VerifyOptions& options) {
    const auto joined = [](const auto& values) {
        return fmt::format("{}", fmt::join(values, ","));
    };
    return {{"the version", kVersion},
            {"the subject", options.subject},
            {"--stage", joined(options.selection.stages)},
            {"--ranks", joined(options.selection.ranks)},
            {"--filter", joined(options.selection.filters)},
            {"--clause", joined(options.clauses)},
            {"--cases", joined(options.case_files)},
            {"--sample", std::to_string(options.sample)},
            {"--seed", options.seed ? std::to_string(*options.seed) : ""},
            {"--timeout", std::to_string(options.timeout_seconds)},
            {"--expect", options.expect_file},
            {"--json", options.json_file},
            {"--junit", options.junit_file},
            {"--csv", options.csv_file},
            {"--markdown", options.markdown_file},
            {"--list", options.list ? "given" : ""},
            {"--stop-at-first-failure", options.stop_at_first_failure ? "given" : ""}};
}

// Cases of more ranks than the job has are left out.
struct ChosenForJob {
    Chosen chosen;
    std::size_t left_out = 0;
    int most_ranks = 0;  // that one left out needs
};

ChosenForJob choose_for_job(const VerifyOptions& options, int ranks) {
    if (options.subject != "reference" || !options.run_command.empty())
        throw scenarios::BadInput("--backend is for the reference: other subjects bring their own");
    if (!options.declaration_file.empty())
        throw scenarios::BadInput("--declaration is for --run: other subjects have theirs");
    if (options.jobs > 1)
        throw scenarios::BadInput(
            "--jobs is for --backend threads: over MPI one case runs at a time");
    ChosenForJob result;
    result.chosen = choose_cases(options, mpi_reference_declaration(ranks));
    std::erase_if(result.chosen.cases, [&](const Case* c) { return ranks_needed(*c) > ranks; });
    suites::Declaration without_limit = mpi_reference_declaration(ranks);
    without_limit.most_ranks = suites::Declaration{}.most_ranks;
    for (const Case* c : select_cases(result.chosen.all, options.selection, without_limit))
        if (ranks_needed(*c) > ranks) {
            ++result.left_out;
            result.most_ranks = std::max(result.most_ranks, ranks_needed(*c));
        }
    return result;
}

std::string remark_on_left_out(const VerifyOptions& options, const ChosenForJob& chosen,
                               int ranks) {
    return fmt::format(
        "{} left out, which {} more ranks than the {} of this job: 'mpirun -n {} {}' "
        "runs them too",
        counted(chosen.left_out, "case"), chosen.left_out == 1 ? "needs" : "need", ranks,
        chosen.most_ranks, options.command);
}

// Throws scenarios::BadInput on rank 0, and says on the others whether to go on.
bool agree(MpiJob& job, const VerifyOptions& options, const ChosenForJob& chosen,
           const std::string& error) {
    Sha256 checksum;
    for (const Case* c : chosen.chosen.cases) {
        const std::string text = suites::case_to_json(*c).dump();
        checksum.add(std::as_bytes(std::span(text)));
    }
    const scenarios::Json mine{
        {"options", agreed_options(options)}, {"cases", checksum.hex()}, {"error", error}};
    const std::vector<std::string> texts = job.gather(mine.dump(), job.ranks());
    std::string why = error;
    for (std::size_t rank = 1; rank < texts.size() && why.empty(); ++rank) {
        const scenarios::Json theirs = scenarios::Json::parse(texts[rank]);
        for (const auto& [option, value] : mine["options"].items())
            if (const scenarios::Json& other = theirs["options"][option];
                other != value && why.empty())
                why = fmt::format(
                    "rank {} was started with {} {}, and rank 0 with {}: start all ranks of a job "
                    "with the same options",
                    rank, option, other.dump(), value.dump());
        if (why.empty() && !theirs["error"].get<std::string>().empty())
            why = fmt::format("rank {}: {}", rank, theirs["error"].get<std::string>());
        if (why.empty() && theirs["cases"] != mine["cases"])
            why = fmt::format(
                "rank {} reads other cases than rank 0: give all ranks the same files", rank);
    }
    const std::string verdict = job.broadcast(why);
    if (job.rank() == 0 && !verdict.empty()) throw scenarios::BadInput(verdict);
    return verdict.empty();
}

// On rank 0, once all ranks agree. Returns the exit code.
int judge_job(MpiJob& job, const VerifyOptions& options, const ChosenForJob& chosen) {
    const std::string remark =
        chosen.left_out == 0 ? std::string() : remark_on_left_out(options, chosen, job.ranks());
    if (chosen.chosen.cases.empty() && chosen.left_out > 0) throw scenarios::BadInput(remark);
    demand_cases(chosen.chosen);
    if (options.list) return list_cases(chosen.chosen);
    MpiReference subject(job, chosen.chosen.cases);
    int code = 0;
    {
        ProgressLine line(options.progress);
        code = judge_and_report(options, subject, chosen.chosen, line,
                                [&](int stuck_code) { job.mpi().abort(stuck_code); });
    }
    if (!remark.empty()) fmt::print("{}\n", remark);
    if (!subject.has_failed()) return code;
    fmt::print(stderr,
               "zeroproof: the job ends with the case that failed, since ranks may be stuck in it; "
               "those after it have not been run\n");
    job.mpi().abort(code);
}

}  // namespace

int verify_over_mpi(const VerifyOptions& options) {
    int code = 2;
    std::exception_ptr error;  // of rank 0, thrown once the job has ended
    {
        MpiJob job{std::chrono::seconds(options.timeout_seconds)};
        ChosenForJob chosen;
        std::string bad_input;
        try {
            chosen = choose_for_job(options, job.ranks());
        } catch (const scenarios::BadInput& bad) {
            bad_input = bad.what();
        }
        if (job.rank() > 0) {
            return agree(job, options, chosen, bad_input)
                       ? serve_mpi_reference(job, chosen.chosen.cases)
                       : code;
        }
        bool agreed = false;
        try {
            agreed = agree(job, options, chosen, bad_input);
            code = judge_job(job, options, chosen);
        } catch (const collectives::MpiFailure& failure) {
            fmt::print(stderr, "zeroproof: {}\n", failure.what());
            job.mpi().abort(4);
        } catch (const scenarios::BadInput&) {
            error = std::current_exception();
        } catch (const Unwritable&) {
            error = std::current_exception();
        } catch (...) {
            error = std::current_exception();
            code = 5;
        }
        if (agreed) end_mpi_reference(job, code);
    }
    if (error) std::rethrow_exception(error);
    return code;
}

}  // namespace zeroproof::harness
