#include "harness/bench/run_bench.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/bench/bench_terminal.h"
#include "harness/bench/fit.h"
#include "harness/bench/operation_bench.h"
#include "harness/bench/stage_bench.h"

namespace zeroproof::harness {

namespace {

using collectives::Op;

// The algorithm of that name for the operation; of a set's name, the set's. Empty if there is none.
std::string algorithm_for(Op op, const std::string& name) {
    if (name == "native" || collectives::find_algorithm(name, op) != nullptr) return name;
    const collectives::AlgorithmSet* set = collectives::find_algorithm_set(name);
    return set == nullptr ? "" : std::string(set->for_op(op).name);
}

bool is_set(const std::string& name) {
    return name == "native" || collectives::find_algorithm_set(name) != nullptr;
}

// Each once, in the order in which they come first.
template <typename T>
std::vector<T> distinct(const std::vector<T>& values) {
    std::vector<T> once;
    for (const T& value : values)
        if (std::ranges::count(once, value) == 0) once.push_back(value);
    return once;
}

std::vector<OperationPlan> operation_plans(const BenchPlan& plan) {
    std::vector<OperationPlan> all;
    for (const Op op : distinct(plan.ops)) {
        std::vector<std::string> names;
        for (const std::string& wanted : plan.algorithms) {
            const std::string name = algorithm_for(op, wanted);
            if (name.empty() || std::ranges::count(names, name) > 0) continue;
            names.push_back(name);
            std::uint64_t last = 0;
            for (const std::uint64_t bytes : plan.bytes) {
                const std::uint64_t whole =
                    whole_bytes(op, plan.type, bytes, plan.topology.ranks());
                if (whole != last) all.push_back({op, name, plan.type, whole});
                last = whole;
            }
        }
    }
    return all;
}

std::vector<StagePlan> stage_plans(const BenchPlan& plan) {
    std::vector<StagePlan> all;
    for (const std::string& algorithm : distinct(plan.algorithms))
        for (const double compute : distinct(plan.compute_seconds))
            for (const int stage : distinct(plan.stages))
                all.push_back({stage, algorithm, plan.type, plan.parameters, plan.units,
                               plan.micro_steps, plan.bucket_elements, compute, plan.overlap});
    return all;
}

}  // namespace

void check(const BenchPlan& plan, int ranks) {
    const auto reject = [](const std::string& why) { throw std::invalid_argument(why); };
    if (plan.topology.ranks() != ranks)
        reject(fmt::format("the topology \"{}\" has {} nodes of {} ranks, {} in all, but {} run",
                           plan.topology.name, plan.topology.nodes, plan.topology.ranks_per_node,
                           plan.topology.ranks(), ranks));
    for (const std::string& name : plan.algorithms) {
        if (!plan.stages.empty() && !is_set(name))
            reject(
                fmt::format("stages need algorithms for several operations: native, ring, "
                            "recursive or hierarchical, not {}",
                            name));
        if (plan.stages.empty() &&
            std::ranges::none_of(plan.ops, [&](Op op) { return !algorithm_for(op, name).empty(); }))
            reject(fmt::format("there is no algorithm {} for the operations asked for", name));
    }
    if (plan.fit && plan.bytes.size() < kLeastSizesForFit)
        reject(fmt::format("a fit takes at least {} sizes, some of them held out; these are {}",
                           kLeastSizesForFit, plan.bytes.size()));
    if (plan.fit && plan.ops.empty()) reject("a fit takes operations: give --ops");
    if (!plan.stages.empty() && plan.type != memory::DType::fp32 &&
        plan.type != memory::DType::bf16 && plan.type != memory::DType::fp16)
        reject(fmt::format("stages train weights of fp32, bf16 or fp16, not {}",
                           memory::name_of(plan.type)));
    if (!plan.stages.empty() && plan.parameters < static_cast<std::uint64_t>(plan.units))
        reject(fmt::format("{} parameters do not make {} units", plan.parameters, plan.units));
}

void run_bench(Team& team, const BenchPlan& plan, BenchRecord& record,
               const BenchProgress& progress, const std::function<void()>& after_result) {
    check(plan, team.ranks());
    const auto operations = operation_plans(plan);
    const auto stages = stage_plans(plan);
    const std::size_t all = operations.size() + stages.size();
    std::size_t done = 0;
    const auto announce = [&](const std::string& what) {
        if (team.leads()) progress(done++, all, what);
    };
    const auto tell = [&] {
        if (team.leads()) after_result();
    };

    for (const OperationPlan& operation : operations) {
        announce(fmt::format("{} by {}, {}", collectives::name_of(operation.op),
                             operation.algorithm, shown_bytes(operation.bytes)));
        record.operations.push_back(time_operation(team, operation, plan.topology, plan.measuring));
        tell();
    }
    if (plan.fit) fit_operations(plan, record);
    for (const StagePlan& stage : stages) {
        announce(fmt::format("stage {} by {}", stage.stage, stage.algorithm));
        StageRun run = time_stage(team, stage, plan.topology, plan.measuring);
        if (plan.fit) predict_stage(plan, record, run);
        record.stages.push_back(std::move(run.result));
        tell();
    }
}

}  // namespace zeroproof::harness
