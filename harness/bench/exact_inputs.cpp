#include "harness/bench/exact_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace zeroproof::harness {

namespace {

constexpr std::size_t kWeights = 13;

double weight(std::size_t element) {
    return static_cast<double>(1 + element % kWeights);
}

}  // namespace

double ExactInputs::value(int rank, std::size_t element) const {
    const std::size_t turn =
        (element + static_cast<std::size_t>(rank)) % static_cast<std::size_t>(ranks_);
    return turn < 2 ? static_cast<double>(turn + 1) * weight(element) : 0.0;
}

double ExactInputs::sum(std::size_t element) const {
    return (ranks_ == 1 ? 1 : 3) * weight(element);
}

std::vector<std::byte> ExactInputs::pattern(int rank, std::size_t begin,
                                            std::size_t elements) const {
    std::vector<std::byte> bytes(elements * memory::size_of(type_));
    for (std::size_t i = 0; i < elements; ++i)
        memory::store_element(type_, bytes.data(), i,
                              rank < 0 ? sum(begin + i) : value(rank, begin + i));
    return bytes;
}

void ExactInputs::fill(int rank, std::size_t begin, std::size_t elements, std::byte* data) const {
    const std::size_t period = kWeights * static_cast<std::size_t>(ranks_);
    const auto once = pattern(rank, begin, std::min(period, elements));
    const std::size_t bytes = elements * memory::size_of(type_);
    for (std::size_t done = 0; done < bytes; done += once.size())
        std::memcpy(data + done, once.data(), std::min(once.size(), bytes - done));
}

std::string ExactInputs::difference(int rank, std::size_t begin, std::size_t elements,
                                    const std::byte* data) const {
    const std::size_t period = kWeights * static_cast<std::size_t>(ranks_);
    const auto once = pattern(rank, begin, std::min(period, elements));
    const std::size_t width = memory::size_of(type_);
    const std::size_t bytes = elements * width;
    for (std::size_t done = 0; done < bytes; done += once.size()) {
        const std::size_t length = std::min(once.size(), bytes - done);
        if (std::memcmp(data + done, once.data(), length) == 0) continue;
        for (std::size_t i = done / width; i < (done + length) / width; ++i) {
            const double expected = rank < 0 ? sum(begin + i) : value(rank, begin + i);
            const double seen = memory::load_element(type_, data, i);
            if (seen != expected)
                return fmt::format("element {} is {}, expected {}", i, seen, expected);
        }
    }
    return {};
}

}  // namespace zeroproof::harness
