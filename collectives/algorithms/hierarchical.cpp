// Two levels: first among the ranks of a node, then among the nodes, so that the links between
// nodes carry each element (A - 1) / A times a node of A, where a flat ring sends (N - 1) / N.
//
// Rank l of each node is responsible for the parts of the ranks l of all nodes. With 2 nodes of 3:
//
//   parts      0  1  2 | 3  4  5
//   rank l     0  1  2   0  1  2      within each node: reduce-scatter of these three classes
//   node       0  0  0   1  1  1      then, among the ranks l of all nodes: of the class's parts
#include "collectives/algorithms/plans.h"

namespace zeroproof::collectives::plans {

namespace {

struct Levels {
    std::size_t node;
    std::size_t local;              // place in the node
    std::vector<int> node_members;  // the ranks of this rank's node
    std::vector<Parts> node_parts;  // what each of them is responsible for
    std::vector<int> peer_members;  // the ranks at this place in all nodes
    std::vector<Parts> peer_parts;  // their own parts

    Levels(const Shape& shape, int rank)
        : node(static_cast<std::size_t>(rank / shape.ranks_per_node)),
          local(static_cast<std::size_t>(rank % shape.ranks_per_node)) {
        const int first = rank - rank % shape.ranks_per_node;
        for (int l = 0; l < shape.ranks_per_node; ++l) {
            node_members.push_back(first + l);
            Parts parts;
            for (int n = 0; n < shape.nodes(); ++n)
                parts.push_back(shape.part(n * shape.ranks_per_node + l));
            node_parts.push_back(parts);
        }
        for (int n = 0; n < shape.nodes(); ++n) {
            const int peer = n * shape.ranks_per_node + rank % shape.ranks_per_node;
            peer_members.push_back(peer);
            peer_parts.push_back({shape.part(peer)});
        }
    }
};

}  // namespace

Schedule hierarchical_reduce_scatter(const Shape& shape, int rank) {
    const Levels levels(shape, rank);
    Schedule schedule =
        collectives::ring_reduce_scatter(levels.node_members, levels.local, levels.node_parts);
    append(schedule,
           collectives::ring_reduce_scatter(levels.peer_members, levels.node, levels.peer_parts));
    return schedule;
}

Schedule hierarchical_all_gather(const Shape& shape, int rank) {
    const Levels levels(shape, rank);
    Schedule schedule =
        collectives::ring_all_gather(levels.peer_members, levels.node, levels.peer_parts);
    append(schedule,
           collectives::ring_all_gather(levels.node_members, levels.local, levels.node_parts));
    return schedule;
}

Schedule hierarchical_all_reduce(const Shape& shape, int rank) {
    Schedule schedule = hierarchical_reduce_scatter(shape, rank);
    append(schedule, hierarchical_all_gather(shape, rank));
    return schedule;
}

}  // namespace zeroproof::collectives::plans
