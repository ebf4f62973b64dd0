#include "collectives/algorithms/schedule.h"

namespace zeroproof::collectives {

Range Shape::parts(int begin, int end) const {
    const auto n = static_cast<std::size_t>(ranks);
    // The first `rest` parts have one element more.
    const std::size_t least = elements / n;
    const std::size_t rest = elements % n;
    const auto start = [&](int rank) {
        const auto r = static_cast<std::size_t>(rank);
        return r * least + (r < rest ? r : rest);
    };
    return {start(begin), start(end) - start(begin)};
}

Round exchange(int to, const Parts& out, int from, const Parts& in, Message::Kind receive) {
    Round round;
    for (const Range& range : out)
        if (range.elements > 0) round.push_back({Message::Kind::send, to, range});
    for (const Range& range : in)
        if (range.elements > 0) round.push_back({receive, from, range});
    return round;
}

// In round s, member i sends on what it has just completed for s + 1 members: part i - s - 1. The
// part that reaches its owner in the last round has passed everybody.
Schedule ring_reduce_scatter(std::span<const int> members, std::size_t me,
                             std::span<const Parts> parts) {
    const std::size_t n = members.size();
    Schedule schedule;
    for (std::size_t s = 0; s + 1 < n; ++s)
        schedule.push_back(exchange(members[(me + 1) % n], parts[(me + n - s - 1) % n],
                                    members[(me + n - 1) % n], parts[(me + 2 * n - s - 2) % n],
                                    Message::Kind::receive_and_reduce));
    return schedule;
}

// In round s, member i sends on what came in the round before: part i - s.
Schedule ring_all_gather(std::span<const int> members, std::size_t me,
                         std::span<const Parts> parts) {
    const std::size_t n = members.size();
    Schedule schedule;
    for (std::size_t s = 0; s + 1 < n; ++s)
        schedule.push_back(exchange(members[(me + 1) % n], parts[(me + n - s) % n],
                                    members[(me + n - 1) % n], parts[(me + n - s - 1) % n],
                                    Message::Kind::receive));
    return schedule;
}

void append(Schedule& schedule, const Schedule& next) {
    schedule.insert(schedule.end(), next.begin(), next.end());
}

}  // namespace zeroproof::collectives
