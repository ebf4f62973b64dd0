// In round s each rank sends to the one s places after it and receives from the one s places
// before: N - 1 rounds, in which every rank sends one part and receives one.
#include "collectives/algorithms/plans.h"

namespace zeroproof::collectives::plans {

Schedule pairwise_all_to_all(const Shape& shape, int rank) {
    Schedule schedule;
    for (int s = 1; s < shape.ranks; ++s) {
        const int to = (rank + s) % shape.ranks;
        const int from = (rank + shape.ranks - s) % shape.ranks;
        schedule.push_back(
            exchange(to, {shape.part(to)}, from, {shape.part(from)}, Message::Kind::receive));
    }
    return schedule;
}

}  // namespace zeroproof::collectives::plans
