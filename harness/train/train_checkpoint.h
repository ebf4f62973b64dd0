// The checkpoints of a training run.
#pragma once

#include <filesystem>
#include <string>

#include "harness/train/train_plan.h"
#include "reference/checkpoint/checkpoint_series.h"

namespace zeroproof::harness {

// What a run must have in common with the one that it goes on from: JSON text. The stage, the
// number of ranks and how they share the samples of a step may be others.
std::string run_description(const TrainPlan& plan);

// The checkpoint that `plan.resume_from` names: itself, or the newest of a series. Throws
// reference::BadCheckpoint if there is none, and for one of another run, saying what differs.
std::filesystem::path checkpoint_to_resume(const TrainPlan& plan);

}  // namespace zeroproof::harness
