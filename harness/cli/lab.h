// The commands around labs; docs/topology.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/lab/plan.h"

namespace zeroproof::harness {

struct LabCommand {
    std::string cluster;
    std::vector<std::string> command;
    std::string name;  // empty for one after this process
    LabOverrides overrides;
    bool dry_run = false;
};

// Each returns the exit code. lab_run throws scenarios::BadInput and LabRefused.
int lab_run(const LabCommand& options);
int lab_list();
// Of all labs whose owner is gone, or of `name` alone. Throws LabRefused if there is no such one.
int lab_clean(const std::string& name, bool dry_run);
// For mpirun: words are the folder of the lab, an address and what a shell there shall run.
int lab_shell(const std::vector<std::string>& words);

// Lists the clusters that have names.
int list_clusters();

}  // namespace zeroproof::harness
