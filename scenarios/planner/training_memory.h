// How many bytes a rank takes to train a transformer, told from the model, the options and the
// number of ranks alone, before anything runs.
#pragma once

#include <array>
#include <cstddef>

#include "memory/ledger.h"
#include "scenarios/planner/planned_stage.h"
#include "scenarios/planner/planned_transformer.h"

namespace zeroproof::scenarios {

struct TrainingPlan {
    TransformerModel model;
    StageOptions stage;
    ActivationOptions activations;
};

struct TrainingMemory {
    memory::Counts counts{0, 0, 0, 0};  // of a rank's parameters
    memory::BytesByCategory at_rest{};  // between a step and the next window
    memory::BytesByCategory after_forward{};
    std::array<std::size_t, memory::kPhases> peak_bytes{};
    std::array<memory::BytesByCategory, memory::kPhases> peak_bytes_by_category{};
    std::size_t host_peak_bytes = 0;

    std::size_t largest_peak_bytes() const;
};

// One step, which is like every other: the loop of a trainer, told to a planned stage and a planned
// transformer.
TrainingMemory plan_memory(const TrainingPlan& plan);

}  // namespace zeroproof::scenarios
