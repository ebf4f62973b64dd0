// The canonical record of a collective: what every source of evidence is brought to.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>
#include <vector>

#include "collectives/communicator.h"
#include "memory/ledger.h"

namespace zeroproof::collectives {

// What the elements of an operation are. `activation` is what a tensor-parallel group sums,
// `checkpoint` the partitioned checkpoints of activations.
enum class Traffic { gradient, parameter, control, activation, checkpoint };
inline constexpr std::size_t kTraffics = 5;
std::string_view name_of(Traffic traffic);

struct CollectiveRecord {
    using Clock = std::chrono::steady_clock;

    int rank = 0;                // world rank
    std::uint64_t sequence = 0;  // place in the rank's operations on this group and class
    std::vector<int> group;      // world ranks, in group order
    Op op = Op::all_reduce;
    std::size_t in_elements = 0;
    std::size_t out_elements = 0;
    DType type = DType::fp32;
    Reduction reduction = Reduction::none;
    int peer = -1;
    memory::Phase phase = memory::Phase::initialise;  // when it was started
    Traffic traffic = Traffic::control;
    Clock::time_point issued{};
    Clock::time_point ended{};
    bool awaited = false;  // whether its rank ever waited for it
};

// Elements that an algorithm which is optimal in volume sends per rank, times N / (N - 1): for a
// logical tensor of P elements, P for reduce-scatter, all-gather, broadcast, reduce and
// all-to-all, 2 P for all-reduce, and 0 in a group of one (ZeRO paper, section 7).
std::size_t nominal_elements(const CollectiveRecord& record);

// Elements that leave a rank, times N, so that they are exact as an integer: N - 1 parts in N of
// the nominal ones, and all of those of a send.
std::size_t sent_elements_times_ranks(const CollectiveRecord& record);

}  // namespace zeroproof::collectives
