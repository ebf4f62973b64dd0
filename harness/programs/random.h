// Numbers for programs: the same on every machine, which the standard's distributions are not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>

namespace zeroproof::harness {

// splitmix64.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() {
        std::uint64_t x = state_ += 0x9E3779B97F4A7C15u;
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
        return x ^ (x >> 31);
    }
    // From 0 to below `n`, which is not 0.
    std::size_t below(std::size_t n) { return static_cast<std::size_t>(next() % n); }
    // Both included.
    int between(int lowest, int highest) {
        return lowest + static_cast<int>(below(static_cast<std::size_t>(highest - lowest + 1)));
    }
    bool chance(int percent) { return below(100) < static_cast<std::size_t>(percent); }
    template <typename T>
    T pick(std::initializer_list<T> values) {
        return *(values.begin() + below(values.size()));
    }
    template <typename Range>
    const auto& any(const Range& values) {
        return *std::next(std::begin(values), static_cast<std::ptrdiff_t>(below(values.size())));
    }

  private:
    std::uint64_t state_;
};

}  // namespace zeroproof::harness
