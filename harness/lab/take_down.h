// Taking labs away, and only what they have made.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "harness/lab/state.h"

namespace zeroproof::harness {

// What a lab still has on this machine, in words: processes, namespaces, files.
std::vector<std::string> remains_of(const LabState& state);

// Ends the lab's processes, with those that `also` finds, and deletes its namespaces and files. A
// namespace that has had its name taken by another is left alone. What could not be taken away, in
// words; then the folder of the lab stays, for another try.
std::vector<std::string> take_down(
    LabState& state,
    const std::function<std::set<pid_t>()>& also = [] { return std::set<pid_t>(); });

}  // namespace zeroproof::harness
