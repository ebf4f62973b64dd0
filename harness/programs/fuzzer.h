// Runs random programs against a subject until the time is up, and shrinks what fails.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/programs/generator.h"
#include "harness/programs/groups.h"
#include "suites/conformance/subject.h"

namespace zeroproof::harness {

struct FuzzRecord {
    std::size_t programs = 0;
    std::size_t failing = 0;   // of them
    std::size_t rejected = 0;  // outside of what the subject supports
    std::size_t not_run = 0;
    std::string not_run_because;  // the first of them
    bool interrupted = false;     // by SIGINT or SIGTERM, while a subject ran as a process
    double seconds = 0;
    double running_seconds = 0;  // of these, without shrinking
    std::optional<double> first_failure_after;
    std::vector<FindingGroup> groups;
    std::map<std::string_view, std::size_t> not_shrunk;  // further failing programs, by clause
    std::map<std::string_view, std::size_t> judged;      // verdicts that compared, by clause
    std::vector<std::string> harness_errors;             // clause, program and what went wrong
};

struct FuzzProgress {
    std::size_t programs = 0;
    std::size_t failing = 0;
    std::size_t groups = 0;
    std::string doing;  // where that takes long
};

struct FuzzRun {
    ProgramSpace space;
    std::uint64_t seed = 1;
    std::chrono::duration<double> time{60};
    std::optional<std::uint64_t> only{};  // this program, and none else
    int jobs = 1;
    std::chrono::milliseconds timeout{20'000};  // of a rank that waits for another
    bool stop_at_first = false;
    bool shrink = true;
    // At a time; absent: as long as the subject's launches ask for.
    std::optional<std::chrono::duration<double>> shrinking_time{};
    // From any thread, one call at a time.
    std::function<void(const FuzzProgress&)> progress{};
    // As RunOptions::stuck: the record then holds what there is. Ends the process.
    std::function<void(const FuzzRecord&)> stuck{};
};

FuzzRecord fuzz(suites::Subject& subject, const FuzzRun& options);

// 0 nothing found, 1 something, 4 the subject could not run, 5 a fault of the harness.
int exit_code(const FuzzRecord& record);

}  // namespace zeroproof::harness
