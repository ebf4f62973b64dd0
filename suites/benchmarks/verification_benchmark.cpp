// How many case configurations a second are run and judged, against the goals of 200 a second for
// cases of up to 8 ranks, and of 30 seconds for the default verification of the reference.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "harness/run.h"
#include "harness/subjects/reference_subject.h"
#include "suites/conformance/family.h"

namespace {

using namespace zeroproof;

constexpr double kGoalPerSecond = 200;
constexpr double kGoalSeconds = 30;

// Runs the cases of up to `most_ranks` ranks once an iteration, on all processors.
void verify(benchmark::State& state, int most_ranks) {
    const std::vector<suites::Case> cases = suites::all_cases();
    std::vector<const suites::Case*> chosen;
    for (const suites::Case& c : cases)
        if (c.ranks <= most_ranks) chosen.push_back(&c);
    const auto subject = harness::make_reference_subject();
    harness::RunOptions options;
    options.jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    options.stuck = [](const harness::Record&) { std::abort(); };
    double seconds = 0;
    for (auto unused : state) {
        harness::Record record;
        harness::run(*subject, chosen, options, record);
        if (record.count(harness::Verdict::fail) > 0) state.SkipWithError("a clause failed");
        seconds += record.seconds;
    }
    const double each = seconds / static_cast<double>(state.iterations());
    const double per_second = static_cast<double>(chosen.size()) / each;
    state.counters["configurations"] = static_cast<double>(chosen.size());
    state.counters["per_s"] = per_second;
    state.counters["per_s_of_goal"] = per_second / kGoalPerSecond;
    state.counters["goal_of_run_s"] = kGoalSeconds / each;
}

BENCHMARK_CAPTURE(verify, up_to_8_ranks, 8)->Unit(benchmark::kSecond)->UseRealTime();
BENCHMARK_CAPTURE(verify, default_run, 64)->Unit(benchmark::kSecond)->UseRealTime();

}  // namespace
