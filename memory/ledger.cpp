#include "memory/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace zeroproof::memory {

std::string_view name_of(Category category) {
    constexpr std::string_view names[kCategories] = {"parameter",  "gradient", "master",
                                                     "momentum",   "variance", "activation",
                                                     "checkpoint", "buffer"};
    return names[static_cast<std::size_t>(category)];
}

std::string_view name_of(Phase phase) {
    constexpr std::string_view names[kPhases] = {"initialise", "forward",   "backward",
                                                 "step",       "zero_grad", "evaluate",
                                                 "save",       "load",      "read"};
    return names[static_cast<std::size_t>(phase)];
}

void Ledger::add(Category category, std::size_t bytes) {
    live_[index(category)] += bytes;
    total_live_ += bytes;
    peak_[index(category)] = std::max(peak_[index(category)], live_[index(category)]);
    note_peak();
}

void Ledger::remove(Category category, std::size_t bytes) {
    if (bytes > live_[index(category)])
        throw std::logic_error(fmt::format("{} bytes of category {} returned, {} are live", bytes,
                                           name_of(category), live_[index(category)]));
    live_[index(category)] -= bytes;
    total_live_ -= bytes;
}

void Ledger::enter(Phase phase) {
    phase_ = phase;
    note_peak();
}

void Ledger::note_peak() {
    total_peak_ = std::max(total_peak_, total_live_);
    auto& peak = peak_by_phase_[index(phase_)];
    peak = std::max(peak, total_live_);
}

}  // namespace zeroproof::memory
