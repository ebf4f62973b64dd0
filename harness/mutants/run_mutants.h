// Builds mutants and sees which of them the suite kills, and by which clause.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "harness/mutants/build_tree.h"
#include "harness/mutants/catalogue.h"
#include "harness/process/child.h"

namespace zeroproof::harness {

enum class MutantOutcome {
    killed,             // by the clause that names the fault
    killed_by_another,  // and the named one did not
    survived,
    not_built,
    crashed,   // ended beside every verdict: by a signal, or by an exit code that is none
    timed_out  // the watchdog ended it
};
std::string_view name_of(MutantOutcome outcome);

struct MutantResult {
    Mutant mutant;
    MutantOutcome outcome = MutantOutcome::survived;
    std::vector<std::string> killers;  // clauses that failed
    std::string note;                  // the compiler's first errors, or how the process ended
    double build_seconds = 0;
    double run_seconds = 0;
    std::optional<double> found_after{};  // seconds until a random program failed
};

struct MutantRunOptions {
    int jobs = 0;  // 0: as many as there are processors
    // Of one wait of a rank in a verification. The watchdog waits for the whole of it longer.
    std::chrono::seconds timeout{20};
    // Above 0: random programs for so long, in place of the built-in cases.
    std::chrono::seconds fuzz{0};
    std::uint64_t seed = 1;             // of these programs
    bool keep = false;                  // the work folder, with sources, objects and programs
    std::filesystem::path work_folder;  // made if it is not there; empty: a temporary one
    // Called after each mutant, from any thread, one call at a time.
    std::function<void(std::size_t done, std::size_t total, const MutantResult& result)> progress;
};

// The unmodified reference does not conform: then no failure tells anything of a mutant.
class UnfitBaseline : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// In the order of the mutants. First verifies, or fuzzes, the unmodified program. Throws
// UnusableBuild, UnfitBaseline or, after SIGINT or SIGTERM, Interrupted.
std::vector<MutantResult> run_mutants(const std::vector<Mutant>& mutants, const BuildTree& build,
                                      const MutantRunOptions& options);

// What is known of one verification of a mutant, or of one search with random programs.
struct Verification {
    ChildEnd end;
    std::vector<std::string> failed;  // clauses, as the record has them
    std::optional<double> found_after{};
};
// The clauses that failed in a record, as verify --json writes it; none if it cannot be read.
std::vector<std::string> failed_clauses(std::string_view record);
// From the verification with the named clause alone, and from that with all, which is asked for
// only where the first did not kill.
void classify(const Verification& named, const std::function<Verification()>& all,
              MutantResult& result);
// From a search, with whatever clause it ended by.
void classify_search(const Verification& search, MutantResult& result);
// The clauses of the groups in a record of `fuzz --json`, and when the first was found.
Verification read_search(ChildEnd end, std::string_view record);

}  // namespace zeroproof::harness
