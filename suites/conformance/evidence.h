// What was observed of a run.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/adversarial.h"
#include "collectives/record.h"
#include "memory/allocation_trace.h"
#include "memory/ledger.h"
#include "suites/conformance/case.h"

namespace zeroproof::suites {

// What evidence may show.
enum class Observation {
    ownership,  // without it, slices only hand over values
    gradient,
    momentum,
    variance,
    master,
    weights,
    echoes,
    norm,
    clip_coefficient,
    skips,
    loss_scale,
    steps,
    live_bytes,
    peak_bytes,
    collectives,
    in_flight,
    races
};
inline constexpr std::size_t kObservations = 17;
std::string_view name_of(Observation observation);

class Observations {
  public:
    Observations() = default;
    Observations(std::initializer_list<Observation> some) {
        for (const Observation one : some) add(one);
    }
    static Observations all() {
        Observations everything;
        everything.bits_.set();
        return everything;
    }
    void add(Observation one) { bits_.set(static_cast<std::size_t>(one)); }
    void remove(Observation one) { bits_.reset(static_cast<std::size_t>(one)); }
    void keep_common(const Observations& others) { bits_ &= others.bits_; }
    bool has(Observation one) const { return bits_.test(static_cast<std::size_t>(one)); }

  private:
    std::bitset<kObservations> bits_;
};

// A run of elements of one parameter, kept by the rank that owns it.
struct OwnedSlice {
    std::size_t parameter = 0;
    std::size_t begin = 0;
    std::size_t elements = 0;
    std::vector<float> gradient;  // averaged and unscaled, before clipping; only after a step
    std::vector<float> momentum;
    std::vector<float> variance;
    std::vector<float> master;
};
inline const std::vector<float>& momentum_of(const OwnedSlice& slice) {
    return slice.momentum;
}
inline const std::vector<float>& variance_of(const OwnedSlice& slice) {
    return slice.variance;
}
inline const std::vector<float>& master_of(const OwnedSlice& slice) {
    return slice.master;
}

// What a rank holds after an action.
struct Snapshot {
    int action = -1;  // of Case::program; -1 is before the first
    ActionKind kind = ActionKind::step;
    std::vector<OwnedSlice> owned;
    std::vector<std::vector<float>> weights;  // by parameter, as the rank would use them
    std::int64_t steps_taken = 0;
    std::int64_t steps_skipped = 0;
    double loss_scale = 1;
    // Only after a step:
    bool skipped = false;
    double norm = 0;
    double clip_coefficient = 1;

    memory::BytesByCategory live_bytes{};
};

// Weights that a pass has used.
struct Echo {
    int action = 0;
    bool backward = false;
    std::size_t unit = 0;
    std::size_t parameter = 0;
    std::vector<float> weights;
};

// Collectives that were in flight while a unit computed.
struct InFlight {
    int action = 0;
    bool backward = false;
    std::size_t unit = 0;
    std::size_t gradient = 0;       // reductions of gradients
    std::size_t parameter = 0;      // gathers of weights
    bool moves_checkpoint = false;  // whether one was on its way to the host or back
};

// An activation checkpoint of one micro-step.
struct CheckpointEvidence {
    std::vector<float> stored;    // what was to be kept: the whole input of the segment
    std::vector<float> part;      // what this rank keeps of it
    std::vector<float> restored;  // what backward computes with
};

// Of a transformer, in one micro-step.
struct ActivationEvidence {
    int action = 0;
    double loss = 0;
    // Local gradients, unscaled: by parameter, by use in the order of the units, by element.
    std::vector<std::vector<std::vector<float>>> gradients;
    memory::BytesByCategory after_forward{};
    memory::BytesByCategory after_backward{};
    memory::BytesByCategory host_after_forward{};
    std::vector<CheckpointEvidence> checkpoints;  // by segment
};

struct RankEvidence {
    std::vector<Snapshot> snapshots;
    std::vector<Echo> echoes;
    std::vector<collectives::CollectiveRecord> collectives;
    std::vector<int> collective_actions;  // by collective: the action it belongs to
    std::vector<InFlight> in_flight;
    bool races_watched = false;            // whether the surroundings were hostile indeed
    std::vector<collectives::Race> races;  // if they were
    std::array<std::size_t, memory::kPhases> peak_bytes{};
    // Of a transformer:
    std::vector<ActivationEvidence> micro_steps;
    std::array<memory::BytesByCategory, memory::kPhases> peak_bytes_by_category{};
    memory::AllocationTrace allocations;  // of the device
};

// The ranks between two reloads.
struct Segment {
    int ranks = 0;
    int stage = 0;
    std::vector<RankEvidence> by_rank;
    // Where weights are cut over tensor-parallel ranks, by_rank is of the first of each group;
    // these are of the others, in the same order.
    std::vector<std::vector<RankEvidence>> peers{};
};

// What the transport delivered: by rank, operation and element.
struct TransportResult {
    std::string operation;  // name and reduction
    std::vector<std::vector<double>> outputs;
    bool repeatable = true;  // the same bits when done again
};

enum class RunStatus {
    completed,
    rejected,  // refused, with a message, before any work
    failed,    // began, and could not go on: a rank threw, a deadlock, a disagreement, a time-out
    environment,    // could not run here
    adapter_failed  // what stands between the subject and the suite is at fault
};

struct Evidence {
    RunStatus status = RunStatus::completed;
    std::string message;
    Observations observed = Observations::all();
    std::vector<Segment> segments;
    std::vector<TransportResult> transport;
};

}  // namespace zeroproof::suites
