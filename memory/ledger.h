// The ledger: how many bytes are live, and how many were at the peak, by category and by phase.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace zeroproof::memory {

// What bytes are for. ZeRO paper, section 3: model states are parameter, gradient, master,
// momentum and variance; activation, checkpoint and buffer are residual states.
enum class Category {
    parameter,
    gradient,
    master,
    momentum,
    variance,
    activation,
    checkpoint,
    buffer
};
inline constexpr std::size_t kCategories = 8;

// What a rank is doing. `read` is an inspection from outside, which training does not need.
// `reduce` is what is left of the gradients' reduction once backward has computed them all.
enum class Phase {
    initialise,
    forward,
    backward,
    step,
    zero_grad,
    evaluate,
    save,
    load,
    read,
    reduce
};
inline constexpr std::size_t kPhases = 10;

std::string_view name_of(Category category);
std::string_view name_of(Phase phase);

using BytesByCategory = std::array<std::size_t, kCategories>;

class Ledger {
  public:
    void add(Category category, std::size_t bytes);
    // Throws std::logic_error when more is returned than was taken.
    void remove(Category category, std::size_t bytes);
    // What follows belongs to `phase`; its peak starts at what is live now.
    void enter(Phase phase);

    Phase phase() const { return phase_; }
    std::size_t live_bytes() const { return total_live_; }
    std::size_t live_bytes(Category category) const { return live_[index(category)]; }
    const BytesByCategory& live_bytes_by_category() const { return live_; }
    // Most bytes ever live at once, over all categories.
    std::size_t peak_bytes() const { return total_peak_; }
    // Most bytes live at once while in `phase`; 0 for a phase never entered.
    std::size_t peak_bytes(Phase phase) const { return peak_by_phase_[index(phase)]; }
    // Most bytes of one category live at once, ever or while in `phase`.
    std::size_t peak_bytes(Category category) const { return peak_[index(category)]; }
    std::size_t peak_bytes(Phase phase, Category category) const {
        return categories_by_phase_[index(phase)][index(category)];
    }

    // Told of each change, after it is made, if anybody is; outlives the ledger.
    class Observer {
      public:
        virtual ~Observer() = default;
        virtual void changed(const Ledger& ledger) = 0;
    };
    void observe(Observer* observer) { observer_ = observer; }

  private:
    template <typename Enum>
    static std::size_t index(Enum value) {
        return static_cast<std::size_t>(value);
    }
    void note_peak(Category category);

    Phase phase_ = Phase::initialise;
    BytesByCategory live_{};
    BytesByCategory peak_{};
    std::array<std::size_t, kPhases> peak_by_phase_{};
    std::array<BytesByCategory, kPhases> categories_by_phase_{};
    Observer* observer_ = nullptr;
    std::size_t total_live_ = 0;
    std::size_t total_peak_ = 0;
};

}  // namespace zeroproof::memory
