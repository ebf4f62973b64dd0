// zeroproof fuzz
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/cli/verify.h"

namespace zeroproof::harness {

struct FuzzCommand {
    VerifyOptions subject;  // of these what names one
    double seconds = 60;
    std::uint64_t seed = 1;
    std::optional<std::uint64_t> only;  // the number of a program
    std::vector<int> stages;            // empty: all that the subject declares
    std::vector<int> ranks;             // empty: 1 to 4, as far as the subject goes
    int timeout_seconds = 20;
    int jobs = 0;  // 0: one a processor
    bool stop_at_first = false;
    bool no_shrink = false;
    std::string save_folder;
    std::string json_file;
    std::string progress = "auto";  // or always, never
    std::string command;            // as typed, for the record
};

// Returns the exit code. Throws scenarios::BadInput and Unwritable for what the user got wrong.
int fuzz_command(const FuzzCommand& options);

}  // namespace zeroproof::harness
