// What one run of `zeroproof train` has measured. docs/train.md has the JSON form.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "collectives/record.h"
#include "harness/train/train_plan.h"
#include "memory/allocation_trace.h"

namespace zeroproof::harness {

struct StepResult {
    std::int64_t step = 0;  // from 1, of the whole run
    double loss = 0;        // mean negative log likelihood of the step's tokens
    double seconds = 0;
    double norm = 0;
    bool skipped = false;
};

// What was live once a change was made.
struct TimelinePoint {
    double seconds = 0;  // since the first step of this run
    memory::Phase phase = memory::Phase::initialise;
    memory::BytesByCategory live_bytes{};
};

struct RankMemory {
    memory::BytesByCategory at_rest{};        // after the last step
    memory::BytesByCategory after_first{};    // after the first step of this run
    memory::BytesByCategory after_forward{};  // of the last micro-step
    std::array<std::size_t, memory::kPhases> peak_bytes{};
    std::array<memory::BytesByCategory, memory::kPhases> peak_bytes_by_category{};
    std::size_t host_peak_bytes = 0;
    std::vector<TimelinePoint> timeline;
    memory::AllocationTrace allocations;
};

// Of the last step, of the first rank.
struct TrafficRow {
    collectives::Traffic traffic = collectives::Traffic::gradient;
    collectives::Op op = collectives::Op::all_reduce;
    memory::Phase phase = memory::Phase::forward;
    std::uint64_t operations = 0;
    std::uint64_t nominal_elements = 0;
};

struct TrainRecord {
    std::string zeroproof_version;
    std::string command;
    std::string started;
    TrainPlan plan;
    std::string data;
    std::size_t parameters = 0;   // phi, of the whole model
    std::int64_t resumed_at = 0;  // steps taken before this run
    std::vector<StepResult> steps;
    std::vector<RankMemory> by_rank;  // empty if the run ended early or had no step to take
    scenarios::TrainingMemory predicted;
    std::vector<TrafficRow> traffic;
    std::size_t resident_before_bytes = 0;  // of the process, before any rank
    std::size_t resident_peak_bytes = 0;
    bool complete = false;
    std::string ended_by;

    // Median over the steps, of which there is one at least.
    double tokens_per_second() const;
};

}  // namespace zeroproof::harness
