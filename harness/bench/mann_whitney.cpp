#include "harness/bench/mann_whitney.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace zeroproof::harness {

namespace {

constexpr std::size_t kMostExact = 30;

struct Value {
    double value;
    bool of_larger;
};

struct RankSum {
    double u = 0;          // pairs in which `larger` is larger; a tie is half a pair
    double tie_cubes = 0;  // sum of t^3 - t over groups of t equal values
};

RankSum rank_sum(std::span<const double> larger, std::span<const double> smaller) {
    std::vector<Value> all;
    for (const double value : larger) all.push_back({value, true});
    for (const double value : smaller) all.push_back({value, false});
    std::ranges::sort(all, {}, &Value::value);
    RankSum sum;
    double smaller_before = 0;
    for (auto begin = all.begin(); begin != all.end();) {
        const auto end =
            std::find_if(begin, all.end(), [&](const Value& v) { return v.value != begin->value; });
        const auto ties = static_cast<double>(end - begin);
        const auto of_larger = static_cast<double>(
            std::count_if(begin, end, [](const Value& v) { return v.of_larger; }));
        sum.u += of_larger * (smaller_before + (ties - of_larger) / 2);
        sum.tie_cubes += ties * ties * ties - ties;
        smaller_before += ties - of_larger;
        begin = end;
    }
    return sum;
}

// P(U >= u) over all ways to choose which `a` of a + b ranks are the first sample's, all alike.
double exact_p(std::size_t a, std::size_t b, std::size_t u) {
    // ways[k][s]: to choose k of the ranks so far that add up to s above the least sum of k ranks.
    // Rank r as the k-th to be chosen adds r - k. Only additions of numbers above 0: nothing
    // cancels.
    std::vector<std::vector<double>> ways(a + 1, std::vector<double>(a * b + 1, 0));
    ways[0][0] = 1;
    for (std::size_t rank = 1; rank <= a + b; ++rank)
        for (std::size_t k = std::min(a, rank); k >= 1; --k) {
            const std::size_t above = rank - k;
            if (above > b) continue;
            for (std::size_t s = above; s <= a * b; ++s) ways[k][s] += ways[k - 1][s - above];
        }
    const auto from = ways[a].begin() + static_cast<std::ptrdiff_t>(u);
    return std::accumulate(from, ways[a].end(), 0.0) /
           std::accumulate(ways[a].begin(), ways[a].end(), 0.0);
}

double normal_p(double a, double b, const RankSum& sum) {
    const double n = a + b;
    const double variance = a * b / 12 * (n + 1 - sum.tie_cubes / (n * (n - 1)));
    if (!(variance > 0)) return 1;  // all values are equal
    return std::erfc((sum.u - a * b / 2 - 0.5) / std::sqrt(2 * variance)) / 2;
}

double median(std::vector<double> values) {
    const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), half, values.end());
    if (values.size() % 2 == 1) return *half;
    return (*std::max_element(values.begin(), half) + *half) / 2;
}

void require_values(std::span<const double> a, std::span<const double> b) {
    if (a.empty() || b.empty()) throw std::invalid_argument("a sample without values");
}

}  // namespace

double mann_whitney_p(std::span<const double> larger, std::span<const double> smaller) {
    require_values(larger, smaller);
    const RankSum sum = rank_sum(larger, smaller);
    if (sum.tie_cubes == 0 && larger.size() <= kMostExact && smaller.size() <= kMostExact)
        return exact_p(larger.size(), smaller.size(), static_cast<std::size_t>(sum.u));
    return normal_p(static_cast<double>(larger.size()), static_cast<double>(smaller.size()), sum);
}

double smallest_mann_whitney_p(std::size_t a, std::size_t b) {
    double p = 1;
    for (std::size_t i = 1; i <= a; ++i) p *= static_cast<double>(i) / static_cast<double>(b + i);
    return p;
}

std::vector<double> holm_adjusted(std::span<const double> p_values) {
    std::vector<std::size_t> order(p_values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return p_values[i]; });
    std::vector<double> adjusted(p_values.size());
    double before = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        const auto left = static_cast<double>(order.size() - i);
        before = std::max(before, std::min(1.0, left * p_values[order[i]]));
        adjusted[order[i]] = before;
    }
    return adjusted;
}

double hodges_lehmann_shift(std::span<const double> a, std::span<const double> b) {
    require_values(a, b);
    std::vector<double> differences;
    differences.reserve(a.size() * b.size());
    for (const double x : a)
        for (const double y : b) differences.push_back(y - x);
    return median(std::move(differences));
}

}  // namespace zeroproof::harness
