// A case that trains a transformer, as the planner sees it.
#pragma once

#include <vector>

#include "scenarios/planner/training_memory.h"
#include "suites/conformance/case.h"

namespace zeroproof::suites {

// Of one rank, before a reload. The case has a transformer.
scenarios::TrainingPlan training_plan(const Case& c);

// Segments of blocks that are recomputed together, as [begin, end) of the case's units.
std::vector<scenarios::PlannedTransformer::Segment> recomputed_segments(const Case& c);

// Of one activation checkpoint on one rank.
std::size_t checkpoint_bytes(const Case& c);

}  // namespace zeroproof::suites
