// What a lab needs of the machine, looked at before anything is made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/lab/plan.h"

namespace zeroproof::harness {

// IPv4 addresses that have the first `length` bits of `address` in common.
struct Network {
    std::uint32_t address = 0;  // in the machine's byte order
    int length = 32;            // in bits
};

// All that this machine has addresses in or routes to, but for the default route.
std::vector<Network> networks_of_this_machine();
// The routes in the text of /proc/net/route.
std::vector<Network> routes_in(const std::string& text);
// A private one that touches none of these. Throws LabRefused if all that are tried do.
Subnet choose_subnet(const std::vector<Network>& taken);

// Throws LabRefused for a missing program or permission, and for a namespace that is there already.
void require_programs(const LabPlan& plan);
void require_permission();
void require_free_names(const LabPlan& plan);

}  // namespace zeroproof::harness
