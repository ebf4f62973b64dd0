// Fits the cost model to what a run has measured, and predicts with it.
#pragma once

#include "harness/bench/bench_options.h"
#include "harness/bench/stage_bench.h"

namespace zeroproof::harness {

// For each operation and algorithm: every other size, from the first, is used for the fit, the rest
// is held out. Adds `fits`, and a prediction to each operation's result.
void fit_operations(const BenchPlan& plan, BenchRecord& record);

// By the fits: the time of the step's operations one after the other, where no compute time hides
// any. Left empty where an operation's algorithm was not fitted.
void predict_stage(const BenchPlan& plan, const BenchRecord& record, StageRun& run);

}  // namespace zeroproof::harness
