#include "harness/train/run_training.h"

#include <algorithm>
#include <fstream>
#include <thread>

#include "collectives/thread_world.h"
#include "harness/train/train_rank.h"
#include "reference/tensor/matmul.h"

namespace zeroproof::harness {

namespace {

// A line of /proc/self/status in bytes; 0 where there is none.
std::size_t process_bytes(const std::string& key) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with(key)) return std::stoull(line.substr(key.size())) * 1024;
    return 0;
}

std::size_t elements_of(const scenarios::TransformerModel& model) {
    std::size_t elements = 0;
    for (const auto& parameter : scenarios::planned_model(model, 1).parameters)
        elements += parameter.elements;
    return elements;
}

}  // namespace

void run_training(const TextData& data, const TrainingWatch& watch, TrainRecord& record) {
    const TrainPlan& plan = record.plan;
    record.parameters = elements_of(plan.model);
    record.predicted = scenarios::plan_memory(plan.memory_plan());
    record.resident_before_bytes = process_bytes("VmRSS:");
    const auto processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    const int threads_of_rank = std::max(1, processors / plan.world_ranks());

    std::vector<RankMemory> by_rank(static_cast<std::size_t>(plan.world_ranks()));
    collectives::ThreadWorld world(plan.world_ranks(), plan.timeout);
    const auto failure = world.run([&](collectives::Communicator& communicator) {
        reference::set_threads_per_rank(threads_of_rank);
        const int rank = communicator.rank();
        TrainRank trained(plan, data, communicator);
        trained.log_to(watch.tensors);
        trained.run([&](const StepResult& result) {
            record.steps.push_back(result);
            watch.step(result);
        });
        if (watch.weights) watch.weights(rank, trained.weights());
        by_rank[static_cast<std::size_t>(rank)] = trained.take_memory();
        if (rank != 0) return;
        record.traffic = trained.last_step_traffic();
        record.resumed_at = trained.resumed_at();
    });
    record.resident_peak_bytes = process_bytes("VmHWM:");
    record.complete = failure == nullptr;
    if (record.complete && !record.steps.empty()) record.by_rank = std::move(by_rank);
    if (record.complete) return;
    record.ended_by = failure->message;
    if (failure->rank_exception) std::rethrow_exception(failure->rank_exception);
}

double TrainRecord::tokens_per_second() const {
    std::vector<double> seconds;
    for (const StepResult& step : steps) seconds.push_back(step.seconds);
    std::ranges::sort(seconds);
    return static_cast<double>(plan.tokens_of_step()) / seconds[seconds.size() / 2];
}

}  // namespace zeroproof::harness
