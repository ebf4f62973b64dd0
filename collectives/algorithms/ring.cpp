// Rings: each rank sends to the next one only. N - 1 rounds, and the least volume possible: every
// rank sends N - 1 of the N parts (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for
// clusters of workstations, 2009).
#include <numeric>

#include "collectives/algorithms/plans.h"

namespace zeroproof::collectives::plans {

namespace {

struct Ring {
    std::vector<int> members;
    std::vector<Parts> parts;

    explicit Ring(const Shape& shape) : members(static_cast<std::size_t>(shape.ranks)) {
        std::iota(members.begin(), members.end(), 0);
        for (const int rank : members) parts.push_back({shape.part(rank)});
    }
};

}  // namespace

Schedule ring_reduce_scatter(const Shape& shape, int rank) {
    const Ring ring(shape);
    return collectives::ring_reduce_scatter(ring.members, static_cast<std::size_t>(rank),
                                            ring.parts);
}

Schedule ring_all_gather(const Shape& shape, int rank) {
    const Ring ring(shape);
    return collectives::ring_all_gather(ring.members, static_cast<std::size_t>(rank), ring.parts);
}

Schedule ring_all_reduce(const Shape& shape, int rank) {
    Schedule schedule = ring_reduce_scatter(shape, rank);
    append(schedule, ring_all_gather(shape, rank));
    return schedule;
}

}  // namespace zeroproof::collectives::plans
