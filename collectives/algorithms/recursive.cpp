// Recursive halving and doubling: log2 N rounds, in each of which pairs of ranks exchange, at half
// the distance (or twice) of the round before (Thakur, Rabenseifner and Gropp, Optimization of
// collective communication operations in MPICH, 2005, sections 4 and 5).
//
// That takes a power of two. Of other numbers the largest power of two below takes part, and the
// ranks beyond it stand behind one that does: the first 2 * extra ranks form pairs, of which the
// odd one is active and acts for both.
#include "collectives/algorithms/plans.h"

namespace zeroproof::collectives::plans {

namespace {

using Kind = Message::Kind;

class Pairs {
  public:
    Pairs(const Shape& shape, int rank) : shape_(shape), rank_(rank) {
        while (active_ * 2 <= shape.ranks) active_ *= 2;
        extra_ = shape.ranks - active_;
    }

    int active() const { return active_; }
    bool has_extra() const { return extra_ > 0; }
    bool in_pair() const { return rank_ < 2 * extra_; }
    bool is_active() const { return !in_pair() || rank_ % 2 == 1; }
    int partner() const { return rank_ ^ 1; }
    // Number among the active ranks, and back.
    int number() const { return in_pair() ? rank_ / 2 : rank_ - extra_; }
    int rank_of(int number) const { return number < extra_ ? 2 * number + 1 : number + extra_; }
    // What the active ranks [begin, end) are responsible for.
    Range parts(int begin, int end) const {
        const auto first = [&](int number) {
            return number < extra_ ? 2 * number : number + extra_;
        };
        return shape_.parts(first(begin), first(end));
    }

    // A round in which one of each pair sends to the other.
    Round to_active(Range sent, Kind receive) const { return within_pair(true, sent, receive); }
    Round from_active(Range sent) const { return within_pair(false, sent, Kind::receive); }

  private:
    Round within_pair(bool to_active, Range range, Kind receive) const {
        if (!in_pair() || range.elements == 0) return {};
        const bool sends = is_active() != to_active;
        return {{sends ? Kind::send : receive, partner(), range}};
    }

    const Shape& shape_;
    int rank_;
    int active_ = 1;
    int extra_ = 0;
};

// Among the active ranks: at first everybody is responsible for everything; in each round two
// ranks share what they are responsible for between them.
Schedule halving(const Pairs& pairs) {
    Schedule schedule;
    for (int distance = pairs.active() / 2; distance > 0; distance /= 2) {
        if (!pairs.is_active()) {
            schedule.emplace_back();
            continue;
        }
        const int me = pairs.number();
        const int peer = me ^ distance;
        const auto half = [&](int number) {
            const int begin = number / distance * distance;
            return pairs.parts(begin, begin + distance);
        };
        schedule.push_back(exchange(pairs.rank_of(peer), {half(peer)}, pairs.rank_of(peer),
                                    {half(me)}, Kind::receive_and_reduce));
    }
    return schedule;
}

// Backwards: in each round two ranks tell each other all they have.
Schedule doubling(const Pairs& pairs) {
    Schedule schedule;
    for (int distance = 1; distance < pairs.active(); distance *= 2) {
        if (!pairs.is_active()) {
            schedule.emplace_back();
            continue;
        }
        const int me = pairs.number();
        const int peer = me ^ distance;
        const auto known = [&](int number) {
            const int begin = number / distance * distance;
            return pairs.parts(begin, begin + distance);
        };
        schedule.push_back(exchange(pairs.rank_of(peer), {known(me)}, pairs.rank_of(peer),
                                    {known(peer)}, Kind::receive));
    }
    return schedule;
}

Range whole(const Shape& shape) {
    return {0, shape.elements};
}

}  // namespace

Schedule recursive_halving_reduce_scatter(const Shape& shape, int rank) {
    const Pairs pairs(shape, rank);
    Schedule schedule;
    if (pairs.has_extra())
        schedule.push_back(pairs.to_active(whole(shape), Kind::receive_and_reduce));
    append(schedule, halving(pairs));
    if (pairs.has_extra()) schedule.push_back(pairs.from_active(shape.part(rank & ~1)));
    return schedule;
}

Schedule recursive_doubling_all_gather(const Shape& shape, int rank) {
    const Pairs pairs(shape, rank);
    Schedule schedule;
    if (pairs.has_extra())
        schedule.push_back(pairs.to_active(shape.part(rank & ~1), Kind::receive));
    append(schedule, doubling(pairs));
    if (pairs.has_extra()) schedule.push_back(pairs.from_active(whole(shape)));
    return schedule;
}

// Reduce-scatter by halving, all-gather by doubling: the least volume in 2 log2 N rounds.
Schedule halving_doubling_all_reduce(const Shape& shape, int rank) {
    const Pairs pairs(shape, rank);
    Schedule schedule;
    if (pairs.has_extra())
        schedule.push_back(pairs.to_active(whole(shape), Kind::receive_and_reduce));
    append(schedule, halving(pairs));
    append(schedule, doubling(pairs));
    if (pairs.has_extra()) schedule.push_back(pairs.from_active(whole(shape)));
    return schedule;
}

// The whole tensor in each of log2 N rounds: the fewest rounds.
Schedule recursive_doubling_all_reduce(const Shape& shape, int rank) {
    const Pairs pairs(shape, rank);
    Schedule schedule;
    if (pairs.has_extra())
        schedule.push_back(pairs.to_active(whole(shape), Kind::receive_and_reduce));
    for (int distance = 1; distance < pairs.active(); distance *= 2) {
        schedule.emplace_back();
        if (!pairs.is_active()) continue;
        const int peer = pairs.rank_of(pairs.number() ^ distance);
        schedule.back() =
            exchange(peer, {whole(shape)}, peer, {whole(shape)}, Kind::receive_and_reduce);
    }
    if (pairs.has_extra()) schedule.push_back(pairs.from_active(whole(shape)));
    return schedule;
}

}  // namespace zeroproof::collectives::plans
