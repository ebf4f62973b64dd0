#include "memory/formulas.h"

#include <fmt/format.h>

#include <stdexcept>

namespace zeroproof::memory {

namespace {

void check(int stage, int ranks) {
    if (stage < 0 || stage > 3)
        throw std::invalid_argument(fmt::format("stage {} is none of 0, 1, 2, 3", stage));
    if (ranks < 1) throw std::invalid_argument(fmt::format("{} ranks: at least 1", ranks));
}

}  // namespace

StateBytes state_bytes(DType weight_type) {
    const std::size_t weight = size_of(weight_type);
    const std::size_t master = weight_type == DType::fp32 ? 0 : 4;
    return {weight, weight, master + 4 + 4};
}

double nominal_model_state_bytes(int stage, StateBytes bytes, double phi, int ranks) {
    check(stage, ranks);
    const auto share = [&](bool partitioned, std::size_t bytes_each) {
        const double all = static_cast<double>(bytes_each) * phi;
        return partitioned ? all / ranks : all;
    };
    return share(stage >= 3, bytes.weight) + share(stage >= 2, bytes.gradient) +
           share(stage >= 1, bytes.optimizer);
}

ModelStates exact_model_state_bytes(int stage, StateBytes bytes, const Counts& counts, int ranks) {
    check(stage, ranks);
    const auto n = static_cast<std::size_t>(ranks);
    if (counts.padded_trainable % n != 0 || counts.padded_frozen % n != 0 ||
        counts.padded_trainable < counts.trainable || counts.padded_frozen < counts.frozen)
        throw std::invalid_argument(fmt::format(
            "padded counts {} and {} do not cover {} and {} in multiples of {}",
            counts.padded_trainable, counts.padded_frozen, counts.trainable, counts.frozen, ranks));
    const std::size_t replicated = stage == 0 ? counts.trainable : counts.padded_trainable;
    const std::size_t share = counts.padded_trainable / n;
    return {
        bytes.weight * (stage >= 3 ? share + counts.padded_frozen / n : replicated + counts.frozen),
        bytes.gradient * (stage >= 2 ? share : replicated),
        bytes.optimizer * (stage >= 1 ? share : replicated)};
}

}  // namespace zeroproof::memory
