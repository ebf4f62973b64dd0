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

// Twice the rank of each value of both samples, which is an integer also where equal values share
// the mean of their ranks; `larger` first.
std::vector<std::size_t> doubled_ranks(std::span<const double> larger,
                                       std::span<const double> smaller) {
    std::vector<double> all(larger.begin(), larger.end());
    all.insert(all.end(), smaller.begin(), smaller.end());
    std::vector<std::size_t> ranks;
    for (const double value : all) {
        const auto below = std::ranges::count_if(all, [&](double v) { return v < value; });
        const auto equal = std::ranges::count(all, value);
        ranks.push_back(static_cast<std::size_t>(2 * below + equal + 1));
    }
    return ranks;
}

// The probability that as many ranks as `larger` has, chosen at random from those of both samples,
// add up to no less than its own. Only additions of numbers above 0: nothing cancels.
double exact_p(std::span<const double> larger, std::span<const double> smaller) {
    const auto ranks = doubled_ranks(larger, smaller);
    const auto own = ranks.begin() + static_cast<std::ptrdiff_t>(larger.size());
    const std::size_t seen = std::accumulate(ranks.begin(), own, std::size_t{0});
    const std::size_t most = std::accumulate(own, ranks.end(), seen);
    // ways[k][s]: to choose k of the ranks so far that add up to s.
    std::vector<std::vector<double>> ways(larger.size() + 1, std::vector<double>(most + 1, 0));
    ways[0][0] = 1;
    for (const std::size_t rank : ranks)
        for (std::size_t k = larger.size(); k >= 1; --k)
            for (std::size_t s = rank; s <= most; ++s) ways[k][s] += ways[k - 1][s - rank];
    const std::vector<double>& all = ways.back();
    return std::accumulate(all.begin() + static_cast<std::ptrdiff_t>(seen), all.end(), 0.0) /
           std::accumulate(all.begin(), all.end(), 0.0);
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
    if (larger.size() <= kMostExact && smaller.size() <= kMostExact)
        return exact_p(larger, smaller);
    const RankSum sum = rank_sum(larger, smaller);
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
