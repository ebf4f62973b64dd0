// What makes a result the same one in another run.
#pragma once

#include <string>

#include "harness/bench/bench_record.h"

namespace zeroproof::harness {

// In words and printable: equal for two results if and only if they measured the same thing.
std::string identity_of(const OperationResult& result);
std::string identity_of(const StageResult& result);

}  // namespace zeroproof::harness
