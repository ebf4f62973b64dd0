// What is told of a fuzzing run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/programs/fuzzer.h"

namespace zeroproof::harness {

struct FuzzReport {
    const FuzzRecord& record;
    std::string subject;
    std::string command;         // as typed
    std::string rerun_options;   // with which the subject is chosen and its programs are made
    std::string verify_options;  // with which it is chosen in `verify`
    std::uint64_t seed = 1;
    std::vector<std::string> files;  // of the groups, in their order; empty if none are saved
};

std::string to_terminal(const FuzzReport& report);
std::string to_json(const FuzzReport& report);

// A family of one case for each group, in a folder that is there. Gives the files' names. Throws
// Unwritable.
std::vector<std::string> save_groups(const FuzzRecord& record, const std::filesystem::path& folder);

}  // namespace zeroproof::harness
