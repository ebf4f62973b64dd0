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
    constexpr std::string_view names[kPhases] = {"initialise", "forward",  "backward", "step",
                                                 "zero_grad",  "evaluate", "save",     "load",
                                                 "read",       "reduce"};
    return names[static_cast<std::size_t>(phase)];
}

void Ledger::add(Category category, std::size_t bytes) {
    live_[index(category)] += bytes;
    total_live_ += bytes;
    note_peak(category);
    if (observer_ != nullptr) observer_->changed(*this);
}

void Ledger::remove(Category category, std::size_t bytes) {
    if (bytes > live_[index(category)])
        throw std::logic_error(fmt::format("{} bytes of category {} returned, {} are live", bytes,
                                           name_of(category), live_[index(category)]));
    live_[index(category)] -= bytes;
    total_live_ -= bytes;
    if (observer_ != nullptr) observer_->changed(*this);
}

void Ledger::enter(Phase phase) {
    phase_ = phase;
    for (std::size_t category = 0; category < kCategories; ++category)
        note_peak(static_cast<Category>(category));
    if (observer_ != nullptr) observer_->changed(*this);
}

void Ledger::note_peak(Category category) {
    const auto raise = [](std::size_t& peak, std::size_t live) { peak = std::max(peak, live); };
    const std::size_t live = live_[index(category)];
    raise(peak_[index(category)], live);
    raise(categories_by_phase_[index(phase_)][index(category)], live);
    raise(total_peak_, total_live_);
    raise(peak_by_phase_[index(phase_)], total_live_);
}

}  // namespace zeroproof::memory
