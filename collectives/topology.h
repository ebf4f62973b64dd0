// Where ranks stand, and what joins them.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace zeroproof::collectives {

// What a message between two ranks travels over.
enum class LinkClass { intra_node, inter_node };
inline constexpr std::size_t kLinkClasses = 2;
inline constexpr LinkClass kAllLinkClasses[] = {LinkClass::intra_node, LinkClass::inter_node};
std::string_view name_of(LinkClass link);

// Whose a link's bandwidth is: each rank's own, or one that all ranks of a node have together.
enum class Sharing { rank, node };
std::string_view name_of(Sharing sharing);

// Links carry both directions at once, each at the full bandwidth. What is not known is empty.
struct Link {
    std::optional<double> bandwidth_bytes_per_s;  // of one direction, above 0
    std::optional<double> latency_s;              // of one message, 0 or more
    Sharing sharing = Sharing::rank;
};

// Nodes of equally many ranks. Rank r stands on node r / ranks_per_node.
struct Topology {
    std::string name;
    int nodes = 1;
    int ranks_per_node = 1;
    std::array<Link, kLinkClasses> links{};  // by LinkClass

    int ranks() const { return nodes * ranks_per_node; }
    int node_of(int rank) const { return rank / ranks_per_node; }
    const Link& link(LinkClass link_class) const {
        return links[static_cast<std::size_t>(link_class)];
    }
    // Of two different ranks.
    LinkClass between(int a, int b) const {
        return node_of(a) == node_of(b) ? LinkClass::intra_node : LinkClass::inter_node;
    }
};

// "2x4"
std::string shape_of(const Topology& topology);

}  // namespace zeroproof::collectives
