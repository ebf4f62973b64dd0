// The steps of zeroproof verify, whatever carries the ranks.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "harness/cli/verify.h"
#include "suites/conformance/clause.h"

namespace zeroproof::harness {

// One line, rewritten, on the terminal.
class ProgressLine {
  public:
    // "auto", "always" or "never".
    explicit ProgressLine(const std::string& mode);
    ~ProgressLine() { clear(); }
    void clear();
    void show(std::size_t done, std::size_t total, std::size_t failures);
    // A line of its own, for what takes long.
    void tell(const std::string& what);

  private:
    bool shown_;
    bool drawn_ = false;
    std::chrono::steady_clock::time_point last_{};
};

// The cases that the options ask for, and what judges them.
struct Chosen {
    std::vector<Case> all;  // that there are; stays where it is
    std::vector<const Case*> cases;
    std::vector<const suites::Clause*> clauses;
};

Chosen choose_cases(const VerifyOptions& options, const suites::Declaration& declaration);
// Throws scenarios::BadInput if no case is left.
void demand_cases(const Chosen& chosen);
// Prints the ids of the cases. Returns the exit code.
int list_cases(const Chosen& chosen);

// Runs, judges and reports. `end_stuck` ends the process with the exit code that it gets, when a
// rank computes without end.
int judge_and_report(const VerifyOptions& options, suites::Subject& subject, const Chosen& chosen,
                     ProgressLine& line, const std::function<void(int code)>& end_stuck);

}  // namespace zeroproof::harness
