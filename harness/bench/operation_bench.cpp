#include "harness/bench/operation_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "collectives/algorithms/carry_out.h"
#include "harness/bench/exact_inputs.h"

namespace zeroproof::harness {

namespace {

using collectives::Op;
using collectives::Operation;
using collectives::Reduction;
using Clock = std::chrono::steady_clock;

constexpr std::byte kPoison{0xA5};

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

bool has_equal_parts(Op op) {
    return op == Op::reduce_scatter || op == Op::all_gather || op == Op::all_to_all;
}

// One rank's memory for one operation.
class Buffers {
  public:
    Buffers(const OperationPlan& plan, int rank, int ranks)
        : rank_(rank), ranks_(ranks), inputs_(plan.type, ranks) {
        const std::size_t width = memory::size_of(plan.type);
        const auto n = static_cast<std::size_t>(ranks);
        elements_ =
            static_cast<std::size_t>(whole_bytes(plan.op, plan.type, plan.bytes, ranks)) / width;
        part_ = elements_ / n;
        operation_.op = plan.op;
        operation_.type = plan.type;
        if (is_reduction(plan.op)) operation_.reduction = Reduction::sum;
        if (plan.op == Op::broadcast || plan.op == Op::reduce) operation_.peer = 0;
        operation_.in_elements = plan.op == Op::all_gather ? part_ : elements_;
        operation_.out_elements = plan.op == Op::reduce_scatter         ? part_
                                  : plan.op == Op::reduce && rank_ != 0 ? 0
                                                                        : elements_;
        input_.resize(operation_.in_bytes());
        output_.resize(operation_.out_bytes());
        // An all-gather's input is the rank's part of one tensor; of everything else it is whole.
        inputs_.fill(rank, 0, operation_.in_elements, input_.data());
        operation_.input = input_.data();
        operation_.output = output_.data();
    }

    const Operation& operation() const { return operation_; }
    std::uint64_t bytes() const { return elements_ * memory::size_of(operation_.type); }
    void poison_output() { std::ranges::fill(output_, kPoison); }

    // What is wrong with the output; empty if nothing is.
    std::string complaint() const {
        const auto r = static_cast<std::size_t>(rank_);
        const std::size_t width = memory::size_of(operation_.type);
        switch (operation_.op) {
            case Op::all_reduce:
            case Op::reduce:
                return inputs_.difference(-1, 0, operation_.out_elements, output_.data());
            case Op::reduce_scatter:
                return inputs_.difference(-1, r * part_, part_, output_.data());
            case Op::broadcast: return inputs_.difference(0, 0, elements_, output_.data());
            default: break;
        }
        for (int from = 0; from < ranks_; ++from) {
            const std::size_t begin = operation_.op == Op::all_gather ? 0 : r * part_;
            const std::size_t place = static_cast<std::size_t>(from) * part_ * width;
            if (std::string what = inputs_.difference(from, begin, part_, output_.data() + place);
                !what.empty())
                return fmt::format("of what rank {} gave, {}", from, what);
        }
        return {};
    }

  private:
    int rank_;
    int ranks_;
    ExactInputs inputs_;
    std::size_t part_ = 0;
    std::size_t elements_ = 0;
    Operation operation_;
    std::vector<std::byte> input_;
    std::vector<std::byte> output_;
};

}  // namespace

OperationResult time_operation(Team& team, const OperationPlan& plan,
                               const collectives::Topology& topology, const Measuring& measuring) {
    const collectives::Algorithm* algorithm = nullptr;
    if (plan.algorithm != "native") {
        algorithm = collectives::find_algorithm(plan.algorithm, plan.op);
        if (algorithm == nullptr)
            throw std::invalid_argument(fmt::format("there is no algorithm {} for {}",
                                                    plan.algorithm, collectives::name_of(plan.op)));
    }
    Buffers buffers(plan, team.rank(), team.ranks());
    collectives::Workspace workspace;
    LinkElements sent{};
    const auto once = [&] {
        if (algorithm == nullptr)
            team.world().start(buffers.operation()).wait();
        else
            collectives::carry_out(team.world(), buffers.operation(), *algorithm,
                                   topology.ranks_per_node, workspace, sent);
    };

    OperationResult result;
    result.op = collectives::name_of(plan.op);
    result.algorithm = plan.algorithm;
    result.type = memory::name_of(plan.type);
    result.ranks = team.ranks();
    result.bytes = buffers.bytes();
    result.bus_factor = bus_factor(plan.op, team.ranks());
    result.bus_formula = bus_formula(plan.op);
    result.bus_limit_bytes_per_s = bus_limit_bytes_per_s(plan.op, topology);

    team.barrier();
    const Clock::time_point before_warm_up = Clock::now();
    for (int i = 0; i < std::max(1, measuring.warm_up); ++i) once();
    const double warm = seconds_since(before_warm_up) / std::max(1, measuring.warm_up);
    const double iterations = team.leaders(
        std::clamp(std::ceil(measuring.least_seconds / std::max(warm, 1e-7)), 1.0, 1e6));

    for (int repeat = 0; repeat < measuring.repeats; ++repeat) {
        buffers.poison_output();
        sent = {};
        team.barrier();
        const Clock::time_point start = Clock::now();
        for (double i = 0; i < iterations; ++i) once();
        const auto seconds = team.gather(seconds_since(start) / iterations);
        const auto slowest = std::ranges::max_element(seconds);
        result.timing.seconds.push_back(*slowest);
        result.timing.slowest_rank.push_back(static_cast<int>(slowest - seconds.begin()));

        std::string complaint = buffers.complaint();
        if (!complaint.empty())
            complaint = fmt::format("rank {}: {} of {} by {}: {}", team.rank(), result.op,
                                    result.type, result.algorithm, complaint);
        team.throw_if_any(complaint);
        result.checked_elements += team.sum(buffers.operation().out_elements);
    }
    if (algorithm != nullptr) {
        const auto by_schedule = collectives::sent_elements(
            *algorithm,
            collectives::shape_of(buffers.operation(), team.ranks(), topology.ranks_per_node));
        LinkElements measured{};
        std::string complaint;
        for (std::size_t link = 0; link < collectives::kLinkClasses; ++link) {
            measured[link] = team.sum(sent[link]) / static_cast<std::uint64_t>(iterations);
            if (measured[link] != by_schedule[link])
                complaint =
                    fmt::format("{} by {}: {} elements sent {}, {} by its schedule", result.op,
                                result.algorithm, measured[link],
                                name_of(collectives::kAllLinkClasses[link]), by_schedule[link]);
        }
        team.throw_if_any(complaint);
        result.sent = measured;
    }
    return result;
}

std::uint64_t whole_bytes(Op op, memory::DType type, std::uint64_t bytes, int ranks) {
    const std::uint64_t width = memory::size_of(type);
    const std::uint64_t step =
        width * (has_equal_parts(op) ? static_cast<std::uint64_t>(ranks) : std::uint64_t{1});
    return (bytes + step - 1) / step * step;
}

double bus_factor(Op op, int ranks) {
    const double n = ranks;
    switch (op) {
        case Op::all_reduce: return 2 * (n - 1) / n;
        case Op::reduce_scatter:
        case Op::all_gather:
        case Op::all_to_all: return (n - 1) / n;
        default: return 1;
    }
}

std::string bus_formula(Op op) {
    switch (op) {
        case Op::all_reduce: return "2 (N - 1) / N";
        case Op::reduce_scatter:
        case Op::all_gather:
        case Op::all_to_all: return "(N - 1) / N";
        default: return "1";
    }
}

// Of a tensor of P bytes over A nodes, all but a node's own A-th must enter it (all-gather), leave
// it (reduce-scatter), or both one after the other (all-reduce); the same holds for a rank alone.
std::optional<double> bus_limit_bytes_per_s(Op op, const collectives::Topology& topology) {
    const auto least_seconds_per_byte = [&](int groups, double bandwidth) {
        const double a = groups;
        switch (op) {
            case Op::all_reduce: return 2 * (a - 1) / a / bandwidth;
            case Op::reduce_scatter:
            case Op::all_gather: return (a - 1) / a / bandwidth;
            // All ranks of a node send what is for other nodes.
            case Op::all_to_all: return (a - 1) / a * (topology.ranks() / a) / bandwidth;
            default: return 1 / bandwidth;
        }
    };
    double least = 0;
    if (topology.nodes > 1) {
        const collectives::Link& link = topology.link(collectives::LinkClass::inter_node);
        if (!link.bandwidth_bytes_per_s) return std::nullopt;
        const double of_node =
            *link.bandwidth_bytes_per_s * (link.sharing == collectives::Sharing::node
                                               ? 1.0
                                               : static_cast<double>(topology.ranks_per_node));
        least = least_seconds_per_byte(topology.nodes, of_node);
    }
    if (topology.ranks_per_node > 1) {
        const collectives::Link& link = topology.link(collectives::LinkClass::intra_node);
        if (link.bandwidth_bytes_per_s && link.sharing == collectives::Sharing::rank)
            least = std::max(least, bus_factor(op, topology.ranks()) / *link.bandwidth_bytes_per_s);
        else if (topology.nodes == 1)
            return std::nullopt;
    }
    if (least == 0) return std::nullopt;
    return bus_factor(op, topology.ranks()) / least;
}

}  // namespace zeroproof::harness
