// What an operation costs: latency and bandwidth of each link class, fitted from measured times.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "collectives/algorithms/algorithms.h"

namespace zeroproof::collectives {

// What a schedule asks of the links, on the rank or node that they bind most: in each round, the
// class of link that is slowest there counts, and of it the most bytes that one link carries.
struct LinkLoad {
    std::array<double, kLinkClasses> rounds{};
    std::array<double, kLinkClasses> bytes{};
};

// A round with a message between nodes counts as one between nodes: what happens within nodes at
// the same time is hidden behind it. Whose a link's bandwidth is, a rank's or a node's, the
// topology tells.
LinkLoad load_of(const Algorithm& algorithm, const Shape& shape, std::size_t element_bytes,
                 const Topology& topology);

// time = sum over link classes of rounds * latency + bytes / bandwidth (Hockney's model for each
// class: Hockney, The communication challenge for MPP, 1994).
struct LinkCosts {
    std::array<double, kLinkClasses> latency_s{};
    std::array<double, kLinkClasses> seconds_per_byte{};
    double seconds(const LinkLoad& load) const;
};

// The costs of a topology's links, if it gives all those that the load asks for.
std::optional<LinkCosts> costs_of(const Topology& topology, const LinkLoad& load);

struct CostSample {
    LinkLoad load;
    double seconds = 0;  // above 0
};

// The costs, none of them negative, that make the sum of squares of the relative errors least.
// Classes that no sample uses cost nothing. Empty for fewer than two samples.
std::optional<LinkCosts> fit_costs(std::span<const CostSample> samples);

// Geometric mean of how many times too large or too small the predictions are, less 1.
double geometric_mean_error(std::span<const CostSample> samples, const LinkCosts& costs);

}  // namespace zeroproof::collectives
