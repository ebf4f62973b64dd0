#include "harness/topology/discover.h"

#include <unistd.h>

#include <array>
#include <fstream>
#include <optional>
#include <system_error>
#include <vector>

namespace zeroproof::harness {

namespace {

// Of each adapter of hardware with a cable in it, in bytes a second. Loopback, bridges and other
// virtual ones have no device; what has no speed says -1 or cannot be read.
std::vector<double> adapter_speeds(const std::filesystem::path& system) {
    constexpr double kBytesPerMbit = 1e6 / 8;
    std::vector<double> speeds;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(system / "class" / "net", none)) {
        std::error_code unknown;
        if (!std::filesystem::exists(entry.path() / "device", unknown)) continue;
        long long mbit_per_s = -1;
        if (std::ifstream(entry.path() / "speed") >> mbit_per_s && mbit_per_s > 0)
            speeds.push_back(static_cast<double>(mbit_per_s) * kBytesPerMbit);
    }
    return speeds;
}

}  // namespace

std::string host_name() {
    std::array<char, 256> name{};
    if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "this machine";
    return name.data();
}

collectives::Topology discover(int nodes, int ranks_per_node, const std::filesystem::path& system) {
    collectives::Topology topology;
    topology.name = host_name();
    topology.nodes = nodes;
    topology.ranks_per_node = ranks_per_node;
    if (nodes == 1) return topology;
    auto& link = topology.links[static_cast<std::size_t>(collectives::LinkClass::inter_node)];
    link.sharing = collectives::Sharing::node;
    const std::vector<double> speeds = adapter_speeds(system);
    if (speeds.size() == 1) link.bandwidth_bytes_per_s = speeds.front();
    return topology;
}

}  // namespace zeroproof::harness
