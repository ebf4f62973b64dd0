// A whole run of benchmarks.
#pragma once

#include <functional>
#include <string>

#include "harness/bench/bench_options.h"
#include "harness/bench/team.h"

namespace zeroproof::harness {

// Operations of every size, then stages, then the fit if it is asked for. Collective. `record` is
// filled as results come, and `after_result` called on rank 0 after each. Throws std::exception
// types: std::invalid_argument for a plan that makes no sense, before anything is measured, and
// WrongResult.
void run_bench(Team& team, const BenchPlan& plan, BenchRecord& record,
               const BenchProgress& progress, const std::function<void()>& after_result);

// Throws std::invalid_argument unless the plan can be run on a world of that many ranks.
void check(const BenchPlan& plan, int ranks);

// How many sizes a fit takes at least: two for latency and bandwidth, and one held out.
inline constexpr std::size_t kLeastSizesForFit = 3;

}  // namespace zeroproof::harness
