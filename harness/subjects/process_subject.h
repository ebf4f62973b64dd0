// A subject that is a command: cases in, evidence out, through files. docs/protocol.md.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "suites/conformance/subject.h"

namespace zeroproof::harness {

struct Launch {
    std::vector<std::string> arguments;
    std::vector<std::string> variables;  // "NAME=value", added to the environment
};

struct ProcessOptions {
    suites::Declaration declaration;
    // What starts `ranks` ranks that read `cases` and write `results`.
    std::function<Launch(int ranks, const std::string& cases, const std::string& results)> launch;
    // Until all ranks have said that they are ready; beyond that, the time-out of a case counts.
    std::chrono::milliseconds startup_timeout{180'000};
    std::string if_it_cannot_start;  // what to do then, for the message
    bool any_version = false;        // take another version than the declaration is for
    // Called when a launch begins, for a line of progress.
    std::function<void(const std::string& what)> progress;
};

std::unique_ptr<suites::Subject> make_process_subject(ProcessOptions options);

// The launch of `zeroproof verify --run`: {ranks}, {cases} and {results} are replaced, and a shell
// runs the rest. Throws scenarios::BadInput if one of the three is missing.
Launch shell_launch(const std::string& command, int ranks, const std::string& cases,
                    const std::string& results);

}  // namespace zeroproof::harness
