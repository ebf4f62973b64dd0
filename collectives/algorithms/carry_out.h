// Carries out a collective by the schedule of an algorithm.
#pragma once

#include <vector>

#include "collectives/algorithms/algorithms.h"

namespace zeroproof::collectives {

// Memory that one operation after another uses, so that it is asked for once.
struct Workspace {
    std::vector<std::byte> tensor;   // where a reduction happens that its output has no room for
    std::vector<std::byte> landing;  // what came in and is yet to be reduced
};

// This rank's part of `operation`, which is no send or receive, over the group's sends and
// receives. Returns when it is done. Adds what the rank sends to `sent`.
//
// 16-bit types are rounded each time that two ranks' elements meet, and integers of a mean wrap
// there, where Communicator's own operations accumulate wider types. Which ranks meet first depends
// on the algorithm, so that sums may differ in the last bits between algorithms; the same one gives
// the same bits each time.
void carry_out(Communicator& group, const Operation& operation, const Algorithm& algorithm,
               int ranks_per_node, Workspace& workspace, LinkElements& sent);

}  // namespace zeroproof::collectives
