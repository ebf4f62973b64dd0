#include "harness/bench/bench_record.h"

#include <algorithm>
#include <stdexcept>

namespace zeroproof::harness {

namespace {

const std::vector<double>& some(const std::vector<double>& seconds) {
    if (seconds.empty()) throw std::logic_error("a timing without repeats");
    return seconds;
}

}  // namespace

double Timing::median_seconds() const {
    std::vector<double> sorted = some(seconds);
    std::ranges::sort(sorted);
    const std::size_t half = sorted.size() / 2;
    return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

double Timing::lowest_seconds() const {
    return std::ranges::min(some(seconds));
}

double Timing::highest_seconds() const {
    return std::ranges::max(some(seconds));
}

double OperationResult::algorithm_bandwidth_bytes_per_s() const {
    return static_cast<double>(bytes) / timing.median_seconds();
}

double OperationResult::bus_bandwidth_bytes_per_s() const {
    return bus_factor * algorithm_bandwidth_bytes_per_s();
}

}  // namespace zeroproof::harness
