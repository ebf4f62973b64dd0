// Runs cases against a subject and judges what they leave behind.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "harness/record.h"
#include "suites/conformance/subject.h"

namespace zeroproof::harness {

struct RunOptions {
    int jobs = 1;
    std::chrono::milliseconds timeout{20'000};  // of one wait of a rank, and of a case beyond that
    // Only these clauses; empty for all that apply.
    std::vector<const suites::Clause*> clauses;
    bool stop_at_first_failure = false;
    // Called when a rank computes without end: it can be neither ended nor waited for. The record
    // holds all that is finished, and the case as a failure. Ends the process.
    std::function<void(const Record& record)> stuck;
    // Called after each case, from any thread, one call at a time.
    std::function<void(std::size_t done, std::size_t total, std::size_t failures)> progress;
};

// `cases` outlive the record. Fills its cases, measurements and seconds.
void run(suites::Subject& subject, const std::vector<const Case*>& cases, const RunOptions& options,
         Record& record);

}  // namespace zeroproof::harness
