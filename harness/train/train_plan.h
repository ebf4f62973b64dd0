// What one run of `zeroproof train` does.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "memory/space.h"
#include "reference/options.h"
#include "scenarios/planner/training_memory.h"
#include "scenarios/transformer_model.h"

namespace zeroproof::harness {

struct TrainPlan {
    scenarios::TransformerModel model;
    int stage = 0;
    int ranks = 1;  // data-parallel
    int tensor_parallel = 1;
    reference::Precision precision = reference::Precision::fp32;
    std::int64_t steps = 100;  // of the whole run, those before a checkpoint included
    std::size_t samples = 4;   // of a micro-step of one rank
    int micro_steps = 1;
    float learning_rate = 1e-3f;
    float weight_decay = 0.1f;
    std::int64_t warm_up_steps = 10;  // in which the learning rate grows
    double clip_norm = 1;
    std::uint64_t seed = 1;
    std::size_t bucket_elements = 1 << 20;
    bool overlap = true;
    bool prefetch = true;

    std::size_t blocks_per_checkpoint = 0;                   // 0 keeps all activations
    bool partition_checkpoints = false;                      // Pa
    bool offload_checkpoints = false;                        // Pa+cpu
    bool contiguous_checkpoints = false;                     // MD
    std::size_t capacity_bytes = memory::Space::kUnlimited;  // of each rank's device

    std::string checkpoint_folder;      // of a series; empty: none is written
    std::int64_t checkpoint_every = 0;  // steps; 0: at the end alone
    std::string resume_from;            // a series or one checkpoint; empty: from the beginning
    // Steps of which every change of the ledger is kept: [begin, end).
    std::int64_t timeline_begin = 1;
    std::int64_t timeline_end = 2;
    bool records_allocations = false;
    std::chrono::milliseconds timeout{600'000};  // that a rank may wait for another

    int world_ranks() const { return ranks * tensor_parallel; }
    std::uint64_t samples_of_step() const {
        return samples * static_cast<std::uint64_t>(ranks) *
               static_cast<std::uint64_t>(micro_steps);
    }
    std::uint64_t tokens_of_step() const { return samples_of_step() * model.sequence; }
    scenarios::TrainingPlan memory_plan() const;
};

// Throws scenarios::BadInput, naming the option, for what does not fit together.
void check(const TrainPlan& plan);

}  // namespace zeroproof::harness
