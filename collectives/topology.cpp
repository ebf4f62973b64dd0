#include "collectives/topology.h"

#include <fmt/format.h>

namespace zeroproof::collectives {

std::string_view name_of(LinkClass link) {
    constexpr std::string_view names[] = {"intra_node", "inter_node"};
    return names[static_cast<std::size_t>(link)];
}

std::string_view name_of(Sharing sharing) {
    constexpr std::string_view names[] = {"rank", "node"};
    return names[static_cast<std::size_t>(sharing)];
}

std::string shape_of(const Topology& topology) {
    return fmt::format("{}x{}", topology.nodes, topology.ranks_per_node);
}

}  // namespace zeroproof::collectives
