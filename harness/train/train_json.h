// A training run as JSON; docs/train.md.
#pragma once

#include <string>

#include "harness/train/train_record.h"

namespace zeroproof::harness {

std::string train_json(const TrainRecord& record);

// The timelines of all ranks as a trace that chrome://tracing and ui.perfetto.dev show: a process
// for each rank, in it the phases as slices and the live bytes of each category as a stacked
// counter.
std::string chrome_trace(const TrainRecord& record);

}  // namespace zeroproof::harness
