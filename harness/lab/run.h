// A lab from its making to its end.
#pragma once

#include <string>
#include <vector>

#include "harness/lab/plan.h"

namespace zeroproof::harness {

inline constexpr int kLabFault = 5;

// Makes the lab, runs `command` with a rank in each place of it, and takes all away again, also
// when SIGINT, SIGTERM or SIGHUP comes. Both outputs go where those of this process do; there is no
// input. Returns the exit code of mpirun, 128 and the number of a signal, or kLabFault if the lab
// could not be made or taken away, which it says on standard error. Throws LabRefused before
// anything is made.
int run_lab(const LabPlan& plan, const std::vector<std::string>& command);

}  // namespace zeroproof::harness
