// How many case configurations a second the frameworks that are driven by name come to, once they
// have started: an engine made, three windows, everything read back after each step. Goals are 2 a
// second for DeepSpeed and 10 for the others, on 2 ranks.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "harness/subjects/python_subject.h"
#include "suites/conformance/family.h"

namespace {

using namespace zeroproof;
using Clock = std::chrono::steady_clock;

void live(benchmark::State& state, const char* subject_name, int stage, double goal_per_second) {
    constexpr std::size_t kCases = 40;
    const std::vector<suites::Case> cases = suites::all_cases();
    const auto plain = std::ranges::find_if(cases, [&](const suites::Case& c) {
        return c.family == "options" && c.stage == stage && c.ranks == 2 &&
               c.precision == suites::Precision::fp32;
    });
    if (plain == cases.end()) return state.SkipWithError("no case of the family options");
    const std::vector<const suites::Case*> copies(kCases, &*plain);
    const auto subject = harness::make_python_subject(subject_name, {});
    double seconds = 0;
    for (auto unused : state) {
        Clock::time_point first{};
        Clock::time_point last{};
        subject->run_batch(copies, std::chrono::seconds(60),
                           [&](std::size_t index, const suites::Evidence& evidence) {
                               if (evidence.status != suites::RunStatus::completed)
                                   state.SkipWithError(evidence.message.c_str());
                               last = Clock::now();
                               if (index == 0) first = last;
                               return true;
                           });
        const double of_iteration = std::chrono::duration<double>(last - first).count();
        state.SetIterationTime(of_iteration);
        seconds += of_iteration;
    }
    const double per_second =
        static_cast<double>(kCases - 1) * static_cast<double>(state.iterations()) / seconds;
    state.counters["per_s"] = per_second;
    state.counters["per_s_of_goal"] = per_second / goal_per_second;
}

#define LIVE(name, subject, stage, goal)                \
    BENCHMARK_CAPTURE(live, name, subject, stage, goal) \
        ->Unit(benchmark::kSecond)                      \
        ->UseManualTime()                               \
        ->Iterations(1)
LIVE(torch_ddp, "torch-ddp", 0, 10);
LIVE(torch_zero1, "torch-zero1", 1, 10);
LIVE(fsdp1_stage_3, "fsdp1", 3, 10);
LIVE(fsdp2_stage_2, "fsdp2", 2, 10);
LIVE(fsdp2_stage_3, "fsdp2", 3, 10);
LIVE(fairscale_stage_2, "fairscale", 2, 10);
LIVE(deepspeed_stage_1, "deepspeed", 1, 2);
LIVE(deepspeed_stage_2, "deepspeed", 2, 2);
LIVE(deepspeed_stage_3, "deepspeed", 3, 2);
#undef LIVE

}  // namespace
