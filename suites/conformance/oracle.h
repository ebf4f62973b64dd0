// The oracle: plain data-parallel Adam, one element at a time, in double precision. It shares no
// code with any implementation.
#pragma once

#include <cstdint>
#include <vector>

#include "suites/conformance/case.h"

namespace zeroproof::suites {

// A value, and how far an fp32 evaluation of the same formula may be from it. Each fp32 operation
// adds half a unit in the last place (2^-24 relative); the bound doubles that, since formulas that
// are equal on paper may be evaluated in another order.
struct Bounded {
    double value = 0;
    double error = 0;
};

// What a subject may decide where the specification leaves it free.
struct Meanings {
    // What becomes of a parameter that no rank has used in a window.
    enum class WithoutGradient {
        zero,  // its gradient is zero: moments and decay go on
        skip   // it is not stepped, and its own step counter stands still
    } without_gradient = WithoutGradient::zero;
    // Added to the norm in the denominator of the clipping coefficient.
    double clip_epsilon = 0;
};

struct ExpectedParameter {
    // Averaged and unscaled; its error is 0 for exact gradients.
    std::vector<Bounded> gradient;
    std::vector<Bounded> momentum;
    std::vector<Bounded> variance;
    std::vector<Bounded> master;
    bool trained = true;           // false while frozen
    bool has_gradient = true;      // some rank has used it in the window of the last step
    std::int64_t steps_taken = 0;  // since its moments were clean: what bias correction counts
};

// What holds after an action.
struct Expected {
    int action = -1;
    ActionKind kind = ActionKind::step;
    std::size_t window_begin = 0;  // the micro-steps that the last step saw, [begin, end)
    std::size_t window_end = 0;
    std::vector<ExpectedParameter> parameters;
    std::int64_t steps_taken = 0;
    std::int64_t steps_skipped = 0;
    double loss_scale = 1;
    bool skipped = false;
    Bounded norm;
    Bounded clip_coefficient{1, 0};
};

// Where gradients and weights come from, if the case does not give them.
class Observed {
  public:
    virtual ~Observed() = default;
    // Local gradient of one use, unscaled. Micro-steps count from the start of the program.
    virtual double gradient(int rank, std::size_t micro_step, std::size_t use,
                            std::size_t parameter, std::size_t element) const = 0;
    // Master before any training.
    virtual double initial_weight(std::size_t parameter, std::size_t element) const = 0;
};

// One entry before the first action, and one after each that is not a micro-step.
std::vector<Expected> expect(const Case& c, const Meanings& meanings = {},
                             const Observed* observed = nullptr);

}  // namespace zeroproof::suites
