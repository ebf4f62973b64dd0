// What the ranks of a group send each other to carry out a collective: data, made before anything
// moves, so that it can be carried out, counted and priced.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "collectives/topology.h"

namespace zeroproof::collectives {

// Elements of the logical tensor.
struct Range {
    std::size_t begin = 0;
    std::size_t elements = 0;
};

// Sends read, and receives write, the same tensor; only all_to_all reads one and writes another.
// `receive_and_reduce` combines what comes with what is there.
struct Message {
    enum class Kind { send, receive, receive_and_reduce };
    Kind kind = Kind::send;
    int peer = 0;  // rank in the group
    Range range;   // not empty
};

// Messages that are under way at one time. What is sent is what was there before the round. No two
// of the receives overlap.
using Round = std::vector<Message>;
// One rank's rounds, each of which begins when that rank has ended the one before. All ranks of a
// group have equally many; some may be empty.
using Schedule = std::vector<Round>;

// Who carries out what, of how many elements.
struct Shape {
    int ranks = 1;
    int ranks_per_node = 1;  // rank r stands on node r / ranks_per_node
    int root = 0;            // of broadcast and reduce
    // Of the logical tensor: for reduce_scatter, all_gather and all_to_all a multiple of `ranks`.
    std::size_t elements = 0;

    int nodes() const { return ranks / ranks_per_node; }
    // Of two different ranks.
    LinkClass between(int a, int b) const {
        return a / ranks_per_node == b / ranks_per_node ? LinkClass::intra_node
                                                        : LinkClass::inter_node;
    }
    // The part of the tensor that belongs to a rank. Parts follow each other and differ by at most
    // one element.
    Range part(int rank) const { return parts(rank, rank + 1); }
    // The parts of ranks [begin, end).
    Range parts(int begin, int end) const;
};

// What travels together.
using Parts = std::vector<Range>;

// A round of one exchange: all of `out` to one rank, all of `in` from another.
Round exchange(int to, const Parts& out, int from, const Parts& in, Message::Kind receive);

// Ring over `members`, of which this rank is number `me`; `parts[i]` belongs to member i. After the
// first each member has its own part reduced over all; the second spreads these.
Schedule ring_reduce_scatter(std::span<const int> members, std::size_t me,
                             std::span<const Parts> parts);
Schedule ring_all_gather(std::span<const int> members, std::size_t me,
                         std::span<const Parts> parts);

// First `schedule`, then `next`.
void append(Schedule& schedule, const Schedule& next);

}  // namespace zeroproof::collectives
