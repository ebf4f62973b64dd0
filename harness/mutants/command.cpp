#include "harness/mutants/command.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "harness/selection.h"
#include "harness/writers/writer.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kAllKilled = 0;
constexpr int kSomeNot = 1;
constexpr int kUsage = 2;
constexpr int kFault = 5;

bool matches(const Mutant& mutant, const std::string& pattern) {
    return pattern.empty() || matches_pattern(pattern, mutant.name) ||
           matches_pattern(pattern, mutant.fault_class) ||
           matches_pattern(pattern, mutant.killed_by);
}

std::vector<Mutant> chosen(const MutantOptions& options, const fs::path& source_tree) {
    std::vector<fs::path> files(options.catalogues.begin(), options.catalogues.end());
    if (files.empty()) files = committed_catalogues(source_tree);
    std::vector<Mutant> mutants = read_catalogues(files, source_tree);
    std::erase_if(mutants, [&](const Mutant& m) { return !matches(m, options.filter); });
    if (mutants.empty())
        throw scenarios::BadInput(
            fmt::format("no mutant in {} catalogues matches '{}'", files.size(), options.filter));
    if (options.one_a_clause) mutants = one_a_clause(mutants, options.seed);
    if (options.sample == 0 || options.sample >= mutants.size()) return mutants;
    std::vector<Mutant> sample;
    for (std::size_t i = 0; i < options.sample; ++i)
        sample.push_back(mutants[i * mutants.size() / options.sample]);
    return sample;
}

int say(int code, const std::string& message) {
    fmt::print(stderr, "zeroproof mutants: {}\n", message);
    return code;
}

int run(const MutantOptions& options) {
    const BuildTree build(ZEROPROOF_SOURCE_DIR, ZEROPROOF_BINARY_DIR);
    const std::vector<Mutant> mutants = chosen(options, build.source_tree());
    if (!options.json.empty()) check_writable(options.json);
    MutantRunOptions run_options;
    run_options.jobs = options.jobs;
    run_options.timeout = options.timeout;
    run_options.fuzz = std::chrono::seconds(options.fuzz_seconds);
    run_options.seed = options.seed;
    run_options.keep = options.keep;
    if (options.keep) {
        run_options.work_folder =
            fs::temp_directory_path() / fmt::format("zeroproof-mutants-{}", getpid());
        fmt::print(stderr, "work folder: {}\n", run_options.work_folder.string());
    }
    run_options.progress = [](std::size_t done, std::size_t total, const MutantResult& result) {
        fmt::print(stderr, "[{}/{}] {}: {}\n", done, total, name_of(result.outcome),
                   result.mutant.name);
    };
    const auto began = Clock::now();
    const std::vector<MutantResult> results = run_mutants(mutants, build, run_options);
    const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
    if (options.fuzz_seconds > 0) {
        fmt::print("{}", search_to_terminal(results, options, seconds));
        if (!options.json.empty())
            write_whole(options.json, search_to_json(results, options, seconds));
        const SearchScore score = search_score(results);
        return score.found == results.size() ? kAllKilled : kSomeNot;
    }
    // The built-in catalogue is meant to have a mutant for every clause.
    const bool is_whole =
        options.filter.empty() && options.catalogues.empty() && options.sample == 0;
    fmt::print("{}", to_terminal(results, seconds, is_whole));
    if (!options.json.empty()) write_whole(options.json, to_json(results, seconds));
    for (const MutantResult& result : results)
        if (result.outcome != MutantOutcome::killed) return kSomeNot;
    return kAllKilled;
}

}  // namespace

int mutants_command(const MutantOptions& options) {
    try {
        return run(options);
    } catch (const scenarios::BadInput& error) {
        return say(kUsage, error.what());
    } catch (const Unwritable& error) {
        return say(kUsage, error.what());
    } catch (const Interrupted&) {
        return say(128 + SIGINT, "interrupted; nothing that it started is left");
    } catch (const std::exception& error) {
        return say(kFault, error.what());
    }
}

}  // namespace zeroproof::harness
