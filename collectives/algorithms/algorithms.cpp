#include "collectives/algorithms/algorithms.h"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/algorithms/plans.h"

namespace zeroproof::collectives {

namespace {

// Volumes are elements that one rank sends of a tensor of P elements over N ranks on A nodes of L.
constexpr Algorithm kAlgorithms[] = {
    {"ring", Op::reduce_scatter, plans::ring_reduce_scatter, "N - 1 rounds, P (N - 1) / N"},
    {"ring", Op::all_gather, plans::ring_all_gather, "N - 1 rounds, P (N - 1) / N"},
    {"ring", Op::all_reduce, plans::ring_all_reduce, "2 (N - 1) rounds, 2 P (N - 1) / N"},
    {"recursive_halving", Op::reduce_scatter, plans::recursive_halving_reduce_scatter,
     "log2 N rounds, P (N - 1) / N where N is a power of two"},
    {"recursive_doubling", Op::all_gather, plans::recursive_doubling_all_gather,
     "log2 N rounds, P (N - 1) / N where N is a power of two"},
    {"halving_doubling", Op::all_reduce, plans::halving_doubling_all_reduce,
     "2 log2 N rounds, 2 P (N - 1) / N where N is a power of two"},
    {"recursive_doubling", Op::all_reduce, plans::recursive_doubling_all_reduce,
     "log2 N rounds, P log2 N where N is a power of two"},
    {"hierarchical", Op::reduce_scatter, plans::hierarchical_reduce_scatter,
     "L + A - 2 rounds, P (L - 1) / L within the node and P (A - 1) / N between nodes"},
    {"hierarchical", Op::all_gather, plans::hierarchical_all_gather,
     "L + A - 2 rounds, P (L - 1) / L within the node and P (A - 1) / N between nodes"},
    {"hierarchical", Op::all_reduce, plans::hierarchical_all_reduce,
     "2 (L + A - 2) rounds, twice the volumes of the reduce-scatter"},
    {"binomial", Op::broadcast, plans::binomial_broadcast, "log2 N rounds, P (N - 1) in all"},
    {"binomial", Op::reduce, plans::binomial_reduce, "log2 N rounds, P (N - 1) in all"},
    {"pairwise", Op::all_to_all, plans::pairwise_all_to_all, "N - 1 rounds, P (N - 1) / N"},
};

constexpr AlgorithmSet kSets[] = {
    {"ring", "ring", "ring", "ring"},
    {"recursive", "recursive_halving", "recursive_doubling", "halving_doubling"},
    {"hierarchical", "hierarchical", "hierarchical", "hierarchical"},
};

}  // namespace

std::span<const Algorithm> algorithms() {
    return kAlgorithms;
}

const Algorithm* find_algorithm(std::string_view name, Op op) {
    const auto found = std::ranges::find_if(
        kAlgorithms, [&](const Algorithm& a) { return a.name == name && a.op == op; });
    return found == std::end(kAlgorithms) ? nullptr : found;
}

const Algorithm& AlgorithmSet::for_op(Op op) const {
    const std::string_view wanted = op == Op::reduce_scatter ? reduce_scatter
                                    : op == Op::all_gather   ? all_gather
                                    : op == Op::all_reduce   ? all_reduce
                                    : op == Op::all_to_all   ? "pairwise"
                                                             : "binomial";
    const Algorithm* algorithm = find_algorithm(wanted, op);
    if (algorithm == nullptr)
        throw std::invalid_argument(
            fmt::format("there is no algorithm {} for {}", wanted, collectives::name_of(op)));
    return *algorithm;
}

std::span<const AlgorithmSet> algorithm_sets() {
    return kSets;
}

const AlgorithmSet* find_algorithm_set(std::string_view name) {
    const auto found =
        std::ranges::find_if(kSets, [&](const AlgorithmSet& set) { return set.name == name; });
    return found == std::end(kSets) ? nullptr : found;
}

LinkElements sent_elements(const Algorithm& algorithm, const Shape& shape) {
    LinkElements sent{};
    for (int rank = 0; rank < shape.ranks; ++rank)
        for (const Round& round : algorithm.schedule(shape, rank))
            for (const Message& message : round)
                if (message.kind == Message::Kind::send)
                    sent[static_cast<std::size_t>(shape.between(rank, message.peer))] +=
                        message.range.elements;
    return sent;
}

Shape shape_of(const Operation& operation, int ranks, int ranks_per_node) {
    // Of a reduction the input is whole on every rank, of everything else the output.
    return {
        .ranks = ranks,
        .ranks_per_node = ranks_per_node,
        .root = operation.op == Op::broadcast || operation.op == Op::reduce ? operation.peer : 0,
        .elements = std::max(operation.in_elements, operation.out_elements)};
}

}  // namespace zeroproof::collectives
