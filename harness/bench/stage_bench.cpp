#include "harness/bench/stage_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "collectives/algorithms/algorithm_communicator.h"
#include "collectives/metered.h"
#include "harness/bench/exact_inputs.h"
#include "harness/bench/timed_communicator.h"
#include "memory/space.h"
#include "reference/trainer.h"

namespace zeroproof::harness {

namespace {

using collectives::Op;
using collectives::Traffic;
using memory::DType;
using memory::Phase;
using Clock = std::chrono::steady_clock;

// Elements of unit `unit`: the first ones have one more where Phi does not divide.
std::uint64_t unit_elements(const StagePlan& plan, int unit) {
    const auto units = static_cast<std::uint64_t>(plan.units);
    return plan.parameters / units +
           (static_cast<std::uint64_t>(unit) < plan.parameters % units ? 1 : 0);
}

// Gradients are N times exact inputs, so that their mean over the ranks is exact too.
class SilentModel : public reference::Model {
  public:
    SilentModel(const StagePlan& plan, int rank, int ranks)
        : seconds_per_unit_(plan.compute_seconds / plan.units) {
        const ExactInputs inputs(plan.type, ranks);
        for (int u = 0; u < plan.units; ++u) {
            const auto elements = static_cast<std::size_t>(unit_elements(plan, u));
            parameters_.push_back({fmt::format("unit{}", u), elements});
            units_.push_back({fmt::format("unit{}", u), {static_cast<std::size_t>(u)}});
            largest_ = std::max(largest_, elements);
        }
        gradient_.resize(largest_ * memory::size_of(plan.type));
        for (std::size_t i = 0; i < largest_; ++i)
            memory::store_element(plan.type, gradient_.data(), i, ranks * inputs.value(rank, i));
    }

    const std::vector<reference::Parameter>& parameters() const override { return parameters_; }
    const std::vector<reference::Unit>& units() const override { return units_; }
    void initial_weights(std::size_t, std::size_t, std::span<float> values) const override {
        std::ranges::fill(values, 0.0f);
    }
    void forward(std::size_t, std::span<const reference::ConstTensor>, reference::Pass) override {
        compute(1.0 / 3);
    }
    void backward(std::size_t, std::span<const reference::ConstTensor>,
                  std::span<const reference::Tensor> gradients, float) override {
        std::copy_n(gradient_.data(), gradients[0].elements * memory::size_of(gradients[0].type),
                    gradients[0].data);
        compute(2.0 / 3);
    }

  private:
    void compute(double share) const {
        if (seconds_per_unit_ > 0)
            std::this_thread::sleep_for(std::chrono::duration<double>(seconds_per_unit_ * share));
    }

    std::vector<reference::Parameter> parameters_;
    std::vector<reference::Unit> units_;
    std::size_t largest_ = 0;
    std::vector<std::byte> gradient_;
    double seconds_per_unit_;
};

reference::Precision precision_of(DType type) {
    switch (type) {
        case DType::fp32: return reference::Precision::fp32;
        case DType::bf16: return reference::Precision::bf16;
        case DType::fp16: return reference::Precision::fp16;
        default:
            throw std::invalid_argument(
                fmt::format("weights of type {}: fp32, bf16 or fp16", memory::name_of(type)));
    }
}

// One rank that trains.
class StageRank {
  public:
    StageRank(Team& team, const StagePlan& plan, const collectives::Topology& topology)
        : plan_(plan),
          ranks_(team.ranks()),
          model_(plan, team.rank(), team.ranks()),
          space_(fmt::format("the device of rank {}", team.rank())),
          meter_(space_.ledger()),
          set_(plan.algorithm == "native" ? nullptr
                                          : collectives::find_algorithm_set(plan.algorithm)),
          gradients_(channel(team, topology, Traffic::gradient)),
          parameters_(channel(team, topology, Traffic::parameter)),
          control_(channel(team, topology, Traffic::control)),
          trainer_(model_, options(plan), {*gradients_, *parameters_, *control_}, space_) {}

    void step() {
        const auto enter = [&](Phase phase) { space_.ledger().enter(phase); };
        for (int m = 0; m < plan_.micro_steps; ++m) {
            enter(Phase::forward);
            trainer_.forward();
            enter(Phase::backward);
            trainer_.backward();
        }
        enter(Phase::step);
        trainer_.step();
    }

    // What is wrong with the reduced gradients of the last step; empty if nothing is.
    std::string complaint() {
        const ExactInputs inputs(plan_.type, ranks_);
        for (const reference::Slice& slice : trainer_.stage().owned()) {
            const reference::Tensor gradient = trainer_.stage().gradient(slice);
            for (std::size_t i = 0; i < gradient.elements; ++i) {
                const double expected = plan_.micro_steps * inputs.sum(slice.begin + i);
                const double seen = memory::load_element(gradient.type, gradient.data, i);
                if (seen != expected)
                    return fmt::format("reduced gradient of unit {}, element {}: {}, expected {}",
                                       slice.parameter, slice.begin + i, seen, expected);
            }
        }
        return {};
    }

    std::span<const collectives::CollectiveRecord> records() const { return meter_.records(); }
    double waited_seconds() const { return waited_seconds_; }
    LinkElements sent() {
        progress_.drain();
        return sent_;
    }

  private:
    std::unique_ptr<collectives::Communicator> channel(Team& team,
                                                       const collectives::Topology& topology,
                                                       Traffic traffic) {
        auto group = std::make_unique<collectives::AlgorithmCommunicator>(
            team.world().split(0, team.rank()), set_, topology.ranks_per_node, progress_, sent_);
        return std::make_unique<TimedCommunicator>(
            std::make_unique<collectives::MeteredCommunicator>(std::move(group), traffic, meter_),
            waited_seconds_);
    }

    static reference::Options options(const StagePlan& plan) {
        reference::Options options;
        options.stage = plan.stage;
        options.precision = precision_of(plan.type);
        options.micro_steps = plan.micro_steps;
        options.groups = {reference::ParameterGroup{}};
        options.bucket_elements = static_cast<std::size_t>(plan.bucket_elements);
        options.overlap = plan.overlap;
        options.prefetch = plan.overlap;
        // The gradients are exact as they are: a scale would only take range from them.
        options.loss_scale = {.initial = 1, .growth_interval = 1 << 30};
        return options;
    }

    const StagePlan& plan_;
    int ranks_;
    SilentModel model_;
    memory::Space space_;
    collectives::Meter meter_;
    const collectives::AlgorithmSet* set_;
    LinkElements sent_{};
    double waited_seconds_ = 0;
    collectives::Progress progress_;
    std::unique_ptr<collectives::Communicator> gradients_;
    std::unique_ptr<collectives::Communicator> parameters_;
    std::unique_ptr<collectives::Communicator> control_;
    reference::Trainer trainer_;
};

bool same_kind(const VolumeRow& a, const VolumeRow& b) {
    return a.traffic == b.traffic && a.op == b.op && a.phase == b.phase;
}

VolumeRow& row_for(std::vector<VolumeRow>& rows, const VolumeRow& kind) {
    const auto found =
        std::ranges::find_if(rows, [&](const auto& r) { return same_kind(r, kind); });
    return found == rows.end() ? rows.emplace_back(kind) : *found;
}

// What one rank has done since record `first`, control traffic left out.
std::vector<VolumeRow> measured_volumes(std::span<const collectives::CollectiveRecord> records) {
    std::vector<VolumeRow> rows;
    for (const collectives::CollectiveRecord& record : records) {
        if (record.traffic == Traffic::control) continue;
        VolumeRow kind;
        kind.traffic = name_of(record.traffic);
        kind.op = collectives::name_of(record.op);
        kind.phase = memory::name_of(record.phase);
        VolumeRow& row = row_for(rows, kind);
        ++row.operations;
        row.nominal_elements += collectives::nominal_elements(record);
        // N ranks send as much each.
        row.sent_elements += collectives::sent_elements_times_ranks(record);
    }
    return rows;
}

std::uint64_t logical_bytes(const collectives::CollectiveRecord& record) {
    return std::max(record.in_elements, record.out_elements) * memory::size_of(record.type);
}

}  // namespace

std::string stage_formula(int stage, int micro_steps) {
    if (stage == 3) return micro_steps == 1 ? "3 Phi" : fmt::format("{} x 3 Phi", micro_steps);
    if (stage == 2 && micro_steps > 1) return fmt::format("{} Phi + Phi", micro_steps);
    return "2 Phi";
}

std::vector<VolumeRow> stage_volumes(const StagePlan& plan, int ranks) {
    const auto n = static_cast<std::uint64_t>(ranks);
    const auto padded = [&](std::uint64_t elements) { return (elements + n - 1) / n * n; };
    const auto g = static_cast<std::uint64_t>(plan.micro_steps);
    std::uint64_t padded_units = 0;
    for (int u = 0; u < plan.units; ++u) padded_units += padded(unit_elements(plan, u));

    std::vector<VolumeRow> rows;
    const auto add = [&](Traffic traffic, Op op, Phase phase, std::uint64_t elements) {
        VolumeRow row;
        row.traffic = name_of(traffic);
        row.op = collectives::name_of(op);
        row.phase = memory::name_of(phase);
        row.formula_elements = ranks == 1 ? 0 : elements;
        row.formula_sent_elements = (n - 1) * row.formula_elements;
        rows.push_back(row);
    };
    // Also without overlap: what is not sent as backward goes on is sent at its end.
    const Phase reduced = Phase::backward;
    switch (plan.stage) {
        case 0: add(Traffic::gradient, Op::all_reduce, reduced, 2 * plan.parameters); break;
        case 1:
            add(Traffic::gradient, Op::reduce_scatter, reduced, padded(plan.parameters));
            add(Traffic::parameter, Op::all_gather, Phase::step, padded(plan.parameters));
            break;
        case 2:
            add(Traffic::gradient, Op::reduce_scatter, reduced, g * padded(plan.parameters));
            add(Traffic::parameter, Op::all_gather, Phase::step, padded(plan.parameters));
            break;
        default:
            add(Traffic::gradient, Op::reduce_scatter, reduced, g * padded_units);
            add(Traffic::parameter, Op::all_gather, Phase::forward, g * padded_units);
            add(Traffic::parameter, Op::all_gather, Phase::backward, g * padded_units);
    }
    return rows;
}

StageRun time_stage(Team& team, const StagePlan& plan, const collectives::Topology& topology,
                    const Measuring& measuring) {
    StageRank rank(team, plan, topology);
    StageRun run;
    StageResult& result = run.result;
    result.stage = plan.stage;
    result.algorithm = plan.algorithm;
    result.type = memory::name_of(plan.type);
    result.ranks = team.ranks();
    result.micro_steps = plan.micro_steps;
    result.parameters = plan.parameters;
    result.bucket_elements = plan.bucket_elements;
    result.compute_seconds = plan.compute_seconds;
    result.overlap = plan.overlap;
    result.formula = stage_formula(plan.stage, plan.micro_steps);

    for (int i = 1; i < measuring.warm_up; ++i) rank.step();
    const std::size_t first = rank.records().size();
    const LinkElements before = rank.sent();
    rank.step();
    const auto records = rank.records().subspan(first);
    const LinkElements after = rank.sent();
    std::string complaint = rank.complaint();
    if (!complaint.empty()) complaint = fmt::format("rank {}: {}", team.rank(), complaint);

    result.volumes = stage_volumes(plan, team.ranks());
    for (const VolumeRow& seen : measured_volumes(records)) {
        VolumeRow& row = row_for(result.volumes, seen);
        row.operations = seen.operations;
        row.nominal_elements = seen.nominal_elements;
        row.sent_elements = seen.sent_elements;
    }
    for (const VolumeRow& row : result.volumes) {
        result.nominal_elements += row.nominal_elements;
        if (row.nominal_elements != row.formula_elements ||
            row.sent_elements != row.formula_sent_elements)
            complaint = fmt::format(
                "stage {}: {} of {}s in {}: {} elements a rank, {} sent by all; the formula gives "
                "{} and {}",
                plan.stage, row.op, row.traffic, row.phase, row.nominal_elements, row.sent_elements,
                row.formula_elements, row.formula_sent_elements);
    }
    team.throw_if_any(complaint);
    if (plan.algorithm != "native") {
        result.sent.emplace();
        for (std::size_t link = 0; link < collectives::kLinkClasses; ++link)
            (*result.sent)[link] = team.sum(after[link] - before[link]);
    }
    for (const auto& record : records)
        ++run.operations[{std::string(collectives::name_of(record.op)), logical_bytes(record)}];

    // A rank's place by the time of the step, and what of it was communication.
    std::vector<double> waited;
    for (int repeat = 0; repeat < measuring.repeats; ++repeat) {
        team.barrier();
        const double waited_before = rank.waited_seconds();
        const Clock::time_point start = Clock::now();
        rank.step();
        const double mine = std::chrono::duration<double>(Clock::now() - start).count();
        const auto seconds = team.gather(mine);
        const auto all_waited = team.gather(rank.waited_seconds() - waited_before);
        const auto slowest = std::ranges::max_element(seconds);
        result.timing.seconds.push_back(*slowest);
        result.timing.slowest_rank.push_back(static_cast<int>(slowest - seconds.begin()));
        waited.push_back(all_waited[static_cast<std::size_t>(slowest - seconds.begin())]);
    }
    // The repeat that stands in the middle, of an even number the faster one.
    std::vector<std::size_t> order(waited.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, {}, [&](std::size_t i) { return result.timing.seconds[i]; });
    const std::size_t middle = order[(order.size() - 1) / 2];
    result.communication_seconds = waited[middle];
    result.computing_seconds = result.timing.seconds[middle] - waited[middle];
    return run;
}

}  // namespace zeroproof::harness
