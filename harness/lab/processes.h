// The processes of a lab: those in its namespaces, and the descendants of its owner.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <set>
#include <vector>

namespace zeroproof::harness {

// Those whose network namespace is one of these.
std::set<pid_t> processes_in(const std::set<ino_t>& namespaces);
// Those of this process, at any depth.
std::set<pid_t> descendants();

// SIGKILL to all that `find` finds, until it finds none; ended children are waited for. False if
// some are still there after `limit`.
bool end_all(const std::function<std::set<pid_t>()>& find, std::chrono::milliseconds limit);

}  // namespace zeroproof::harness
