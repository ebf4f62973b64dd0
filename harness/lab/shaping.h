// How a link of a lab gets its bandwidth: a token bucket on each of its two ends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/topology.h"

namespace zeroproof::harness {

// Frames as in most clusters; headers then take 0.7 % of the bandwidth, not 5 %.
inline constexpr int kLabMtuBytes = 9000;

struct Shape {
    std::uint64_t rate_bit_per_s = 0;
    // What may leave at once after a pause. Less is more exact for short messages; more makes up
    // for a processor that comes late because ranks keep it busy.
    std::uint64_t burst_bytes = 0;
    std::uint64_t queue_bytes = 0;  // beyond which packets are dropped
    double delay_s = 0;             // of each packet, 0 for none
};

// Of a link with a known bandwidth.
Shape shape_for(const collectives::Link& link);

// The commands that shape what leaves `device` in `name_space`.
std::vector<std::vector<std::string>> shaping_commands(const std::string& name_space,
                                                       const std::string& device,
                                                       const Shape& shape);

}  // namespace zeroproof::harness
