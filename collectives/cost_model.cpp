#include "collectives/cost_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace zeroproof::collectives {

namespace {

constexpr std::size_t kUnknowns = 2 * kLinkClasses;  // latencies, then seconds per byte
using Row = std::array<double, kUnknowns>;

Row row_of(const LinkLoad& load) {
    Row row{};
    for (std::size_t c = 0; c < kLinkClasses; ++c) {
        row[c] = load.rounds[c];
        row[kLinkClasses + c] = load.bytes[c];
    }
    return row;
}

// Solves for the unknowns of `active` by normal equations with pivoting; the others are zero.
// Columns are scaled first, as rounds and bytes differ by many powers of ten. Empty where they
// depend on each other.
std::optional<Row> solve(std::span<const Row> rows, unsigned active) {
    std::vector<std::size_t> columns;
    for (std::size_t c = 0; c < kUnknowns; ++c)
        if ((active >> c & 1) != 0) columns.push_back(c);
    const std::size_t n = columns.size();
    Row scale{};
    for (const std::size_t c : columns) {
        for (const Row& row : rows) scale[c] = std::max(scale[c], row[c]);
        if (scale[c] == 0) return std::nullopt;
    }
    // Each sample asks that its row, divided by its time, give 1.
    std::vector<std::vector<double>> matrix(n, std::vector<double>(n + 1, 0.0));
    for (const Row& row : rows)
        for (std::size_t i = 0; i < n; ++i) {
            const double left = row[columns[i]] / scale[columns[i]];
            for (std::size_t j = 0; j < n; ++j)
                matrix[i][j] += left * row[columns[j]] / scale[columns[j]];
            matrix[i][n] += left;
        }
    for (std::size_t pivot = 0; pivot < n; ++pivot) {
        std::size_t best = pivot;
        for (std::size_t i = pivot; i < n; ++i)
            if (std::abs(matrix[i][pivot]) > std::abs(matrix[best][pivot])) best = i;
        std::swap(matrix[pivot], matrix[best]);
        if (std::abs(matrix[pivot][pivot]) < 1e-9) return std::nullopt;
        for (std::size_t i = 0; i < n; ++i) {
            if (i == pivot) continue;
            const double factor = matrix[i][pivot] / matrix[pivot][pivot];
            for (std::size_t j = pivot; j <= n; ++j) matrix[i][j] -= factor * matrix[pivot][j];
        }
    }
    Row solution{};
    for (std::size_t i = 0; i < n; ++i)
        solution[columns[i]] = matrix[i][n] / matrix[i][i] / scale[columns[i]];
    return solution;
}

double squared_error(std::span<const Row> rows, const Row& solution) {
    double total = 0;
    for (const Row& row : rows) {
        double prediction = 0;
        for (std::size_t c = 0; c < kUnknowns; ++c) prediction += row[c] * solution[c];
        total += (prediction - 1) * (prediction - 1);
    }
    return total;
}

}  // namespace

LinkLoad load_of(const Algorithm& algorithm, const Shape& shape, std::size_t element_bytes,
                 const Topology& topology) {
    std::vector<Schedule> schedules;
    for (int rank = 0; rank < shape.ranks; ++rank)
        schedules.push_back(algorithm.schedule(shape, rank));
    LinkLoad load;
    for (std::size_t r = 0; r < schedules.front().size(); ++r) {
        // Bytes that each rank or node sends, and receives, by class.
        std::array<std::map<int, std::array<double, 2>>, kLinkClasses> carried;
        for (int rank = 0; rank < shape.ranks; ++rank)
            for (const Message& message : schedules[static_cast<std::size_t>(rank)][r]) {
                const LinkClass link = shape.between(rank, message.peer);
                const bool by_node = topology.link(link).sharing == Sharing::node;
                const int carrier = by_node ? rank / shape.ranks_per_node : rank;
                const bool sends = message.kind == Message::Kind::send;
                carried[static_cast<std::size_t>(link)][carrier][sends ? 0 : 1] +=
                    static_cast<double>(message.range.elements * element_bytes);
            }
        const auto slowest = static_cast<std::size_t>(
            carried[static_cast<std::size_t>(LinkClass::inter_node)].empty()
                ? LinkClass::intra_node
                : LinkClass::inter_node);
        if (carried[slowest].empty()) continue;
        double most = 0;
        for (const auto& [carrier, bytes] : carried[slowest])
            most = std::max({most, bytes[0], bytes[1]});
        load.rounds[slowest] += 1;
        load.bytes[slowest] += most;
    }
    return load;
}

double LinkCosts::seconds(const LinkLoad& load) const {
    double total = 0;
    for (std::size_t c = 0; c < kLinkClasses; ++c)
        total += load.rounds[c] * latency_s[c] + load.bytes[c] * seconds_per_byte[c];
    return total;
}

std::optional<LinkCosts> costs_of(const Topology& topology, const LinkLoad& load) {
    LinkCosts costs;
    for (std::size_t c = 0; c < kLinkClasses; ++c) {
        if (load.rounds[c] == 0) continue;
        const Link& link = topology.links[c];
        if (!link.bandwidth_bytes_per_s || !link.latency_s) return std::nullopt;
        costs.latency_s[c] = *link.latency_s;
        costs.seconds_per_byte[c] = 1 / *link.bandwidth_bytes_per_s;
    }
    return costs;
}

// With so few unknowns, the best fit without negative costs is found by trying each subset of them:
// the solution has some at zero, and is the free fit of the others.
std::optional<LinkCosts> fit_costs(std::span<const CostSample> samples) {
    if (samples.size() < 2) return std::nullopt;
    std::vector<Row> rows;
    for (const CostSample& sample : samples) {
        Row row = row_of(sample.load);
        for (double& value : row) value /= sample.seconds;
        rows.push_back(row);
    }
    std::optional<Row> best;
    for (unsigned active = 1; active < 1u << kUnknowns; ++active) {
        const auto solution = solve(rows, active);
        if (!solution || std::ranges::any_of(*solution, [](double cost) { return cost < 0; }))
            continue;
        if (!best || squared_error(rows, *solution) < squared_error(rows, *best)) best = solution;
    }
    if (!best) return std::nullopt;
    LinkCosts costs;
    for (std::size_t c = 0; c < kLinkClasses; ++c) {
        costs.latency_s[c] = (*best)[c];
        costs.seconds_per_byte[c] = (*best)[kLinkClasses + c];
    }
    return costs;
}

double geometric_mean_error(std::span<const CostSample> samples, const LinkCosts& costs) {
    double logarithms = 0;
    for (const CostSample& sample : samples)
        logarithms += std::abs(std::log(costs.seconds(sample.load) / sample.seconds));
    return samples.empty() ? 0 : std::exp(logarithms / static_cast<double>(samples.size())) - 1;
}

}  // namespace zeroproof::collectives
