// The machine at hand as a topology.
#pragma once

#include <filesystem>
#include <string>

#include "collectives/topology.h"

namespace zeroproof::harness {

// "this machine" if it has none.
std::string host_name();

// Nodes like this machine, under its name. Where there are several, the bandwidth between them is
// that of its network adapter, if it has a single one that tells, in `system` as Linux lays it out;
// which of several carries the messages cannot be seen. All else is unknown.
collectives::Topology discover(int nodes, int ranks_per_node,
                               const std::filesystem::path& system = "/sys");

}  // namespace zeroproof::harness
