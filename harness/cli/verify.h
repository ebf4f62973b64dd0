// zeroproof verify
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/selection.h"
#include "suites/conformance/subject.h"

namespace zeroproof::harness {

struct VerifyOptions {
    std::string subject = "reference";
    std::string run_command;       // in place of a subject
    std::string declaration_file;  // of the subject of run_command
    std::string python;
    bool any_version = false;
    std::size_t sample = 0;  // most cases of a family; 0: all
    Selection selection;
    std::vector<std::string> clauses;     // patterns; empty: all
    std::vector<std::string> case_files;  // families in place of the built-in ones
    bool list = false;
    std::string expect_file;
    int timeout_seconds = 20;
    std::optional<std::uint64_t> seed;
    int jobs = 0;  // 0: one a processor
    // What the ranks of the reference are: threads, or with mpi processes that mpirun has started,
    // each with the same options.
    std::string algorithms;  // a set of them; empty: the transport's own collectives
    int ranks_per_node = 1;
    std::string backend = "threads";
    std::string json_file;
    std::string junit_file;
    std::string csv_file;
    std::string markdown_file;
    std::string progress = "auto";  // or always, never
    bool stop_at_first_failure = false;
    std::string command;  // as typed, for the record
};

// What the options name. `progress` is told what takes long. Throws scenarios::BadInput.
using Progress = std::function<void(const std::string& what)>;
std::unique_ptr<suites::Subject> make_subject(const VerifyOptions& options,
                                              const Progress& progress);

// Returns the exit code. Throws scenarios::BadInput and Unwritable for what the user got wrong.
int verify(const VerifyOptions& options);

}  // namespace zeroproof::harness
