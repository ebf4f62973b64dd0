// A binomial tree: in each round everybody who has the tensor sends it to one who has not, so that
// log2 N rounds, rounded up, reach all. A reduction is the same tree backwards.
#include "collectives/algorithms/plans.h"

namespace zeroproof::collectives::plans {

namespace {

// Round k of a broadcast: ranks are counted from the root, and `distance` is 2^(rounds - 1 - k).
// Those at multiples of 2 * distance have the tensor; each sends it `distance` further.
Round tree_round(const Shape& shape, int rank, int distance, bool towards_root) {
    const int place = (rank - shape.root + shape.ranks) % shape.ranks;
    const auto rank_at = [&](int p) { return (p + shape.root) % shape.ranks; };
    const Range whole{0, shape.elements};
    Round round;
    if (whole.elements == 0) return round;
    using Kind = Message::Kind;
    if (place % (2 * distance) == 0 && place + distance < shape.ranks)
        round.push_back({towards_root ? Kind::receive_and_reduce : Kind::send,
                         rank_at(place + distance), whole});
    if (place % (2 * distance) == distance)
        round.push_back(
            {towards_root ? Kind::send : Kind::receive, rank_at(place - distance), whole});
    return round;
}

}  // namespace

Schedule binomial_broadcast(const Shape& shape, int rank) {
    int distance = 1;
    while (distance < shape.ranks) distance *= 2;
    Schedule schedule;
    for (distance /= 2; distance > 0; distance /= 2)
        schedule.push_back(tree_round(shape, rank, distance, false));
    return schedule;
}

Schedule binomial_reduce(const Shape& shape, int rank) {
    Schedule schedule;
    for (int distance = 1; distance < shape.ranks; distance *= 2)
        schedule.push_back(tree_round(shape, rank, distance, true));
    return schedule;
}

}  // namespace zeroproof::collectives::plans
