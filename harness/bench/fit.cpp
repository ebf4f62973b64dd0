#include "harness/bench/fit.h"

#include <algorithm>

#include "collectives/cost_model.h"

namespace zeroproof::harness {

namespace {

using collectives::LinkClass;
using collectives::LinkLoad;
using collectives::Op;

// Of the backend's own operation, whose algorithm is not known: one round and the whole tensor,
// over the slowest links there are. What it fits is a latency and a bandwidth of the operation.
LinkLoad load(const BenchPlan& plan, const std::string& op_name, const std::string& algorithm_name,
              std::uint64_t bytes) {
    const Op op = collectives::op_from_name(op_name).value();
    if (algorithm_name == "native") {
        LinkLoad whole;
        const auto link = static_cast<std::size_t>(plan.topology.nodes > 1 ? LinkClass::inter_node
                                                                           : LinkClass::intra_node);
        whole.rounds[link] = 1;
        whole.bytes[link] = static_cast<double>(bytes);
        return whole;
    }
    const std::size_t width = memory::size_of(plan.type);
    return collectives::load_of(*collectives::find_algorithm(algorithm_name, op),
                                {.ranks = plan.topology.ranks(),
                                 .ranks_per_node = plan.topology.ranks_per_node,
                                 .root = 0,
                                 .elements = static_cast<std::size_t>(bytes) / width},
                                width, plan.topology);
}

collectives::LinkCosts costs_of(const FittedAlgorithm& fit) {
    collectives::LinkCosts costs;
    for (std::size_t c = 0; c < collectives::kLinkClasses; ++c) {
        costs.latency_s[c] = fit.latency_s[c].value_or(0);
        if (fit.bandwidth_bytes_per_s[c])
            costs.seconds_per_byte[c] = 1 / *fit.bandwidth_bytes_per_s[c];
    }
    return costs;
}

void fit_one(const BenchPlan& plan, BenchRecord& record, const std::string& op,
             const std::string& algorithm) {
    std::vector<collectives::CostSample> fitted, held_out;
    std::vector<OperationResult*> results;
    for (OperationResult& result : record.operations)
        if (result.op == op && result.algorithm == algorithm) results.push_back(&result);
    for (std::size_t i = 0; i < results.size(); ++i)
        (i % 2 == 0 ? fitted : held_out)
            .push_back({load(plan, op, algorithm, results[i]->bytes),
                        results[i]->timing.median_seconds()});
    const auto costs = collectives::fit_costs(fitted);
    if (!costs) return;
    FittedAlgorithm& fit = record.fits.emplace_back();
    fit.op = op;
    fit.algorithm = algorithm;
    for (std::size_t c = 0; c < collectives::kLinkClasses; ++c) {
        if (fitted.front().load.rounds[c] == 0) continue;
        fit.latency_s[c] = costs->latency_s[c];
        if (costs->seconds_per_byte[c] > 0)
            fit.bandwidth_bytes_per_s[c] = 1 / costs->seconds_per_byte[c];
    }
    fit.errors = {.fitted = collectives::geometric_mean_error(fitted, *costs),
                  .held_out = collectives::geometric_mean_error(held_out, *costs),
                  .fitted_sizes = fitted.size(),
                  .held_out_sizes = held_out.size()};
    for (std::size_t i = 0; i < results.size(); ++i)
        results[i]->prediction =
            Prediction{.seconds = costs->seconds(load(plan, op, algorithm, results[i]->bytes)),
                       .used_for_fit = i % 2 == 0};
}

}  // namespace

void fit_operations(const BenchPlan& plan, BenchRecord& record) {
    std::vector<std::pair<std::string, std::string>> kinds;
    for (const OperationResult& result : record.operations)
        if (std::ranges::count(kinds, std::pair(result.op, result.algorithm)) == 0)
            kinds.emplace_back(result.op, result.algorithm);
    for (const auto& [op, algorithm] : kinds) fit_one(plan, record, op, algorithm);
}

void predict_stage(const BenchPlan& plan, const BenchRecord& record, StageRun& run) {
    if (run.result.compute_seconds > 0) return;
    const collectives::AlgorithmSet* set = collectives::find_algorithm_set(run.result.algorithm);
    double seconds = 0;
    for (const auto& [operation, count] : run.operations) {
        const auto& [op, bytes] = operation;
        const std::string algorithm =
            set == nullptr ? "native"
                           : std::string(set->for_op(collectives::op_from_name(op).value()).name);
        const auto fit = std::ranges::find_if(record.fits, [&, &op_name = op](const auto& f) {
            return f.op == op_name && f.algorithm == algorithm;
        });
        if (fit == record.fits.end()) return;
        seconds +=
            static_cast<double>(count) * costs_of(*fit).seconds(load(plan, op, algorithm, bytes));
    }
    run.result.prediction = Prediction{.seconds = seconds, .used_for_fit = false};
}

}  // namespace zeroproof::harness
