// The whole of a training run: ranks as threads, and what they have measured.
#pragma once

#include <functional>

#include "harness/train/tensor_log.h"
#include "harness/train/text_data.h"
#include "harness/train/train_record.h"

namespace zeroproof::harness {

struct TrainingWatch {
    // Told of each step as it ends.
    std::function<void(const StepResult&)> step = [](const StepResult&) {};
    // Given each rank's weights at the end, if anybody wants them.
    std::function<void(int rank, std::vector<std::vector<float>> weights)> weights{};
    // Filled in by the ranks, if it is not null.
    TensorLog* tensors = nullptr;
};

// Fills `record`, whose plan, data name and origin are given; `complete` says whether it came to
// its end, and `ended_by` why not. Throws what a rank threw that is the user's to mend:
// memory::OutOfMemory, reference::BadCheckpoint, scenarios::BadInput.
void run_training(const TextData& data, const TrainingWatch& watch, TrainRecord& record);

}  // namespace zeroproof::harness
