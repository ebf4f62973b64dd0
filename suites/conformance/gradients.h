// The gradients that a case feeds, and the weights it starts from.
#pragma once

#include <cstddef>
#include <vector>

#include "suites/conformance/case.h"

namespace zeroproof::suites {

// Where a gradient element comes from. Micro-steps count from the start of the program.
struct Contribution {
    int rank;
    std::size_t micro_step;
    std::size_t use;  // which of the units that use the parameter
};

// Gradients whose reduction is exact. With N ranks and GA micro-steps, a contribution is
// N * GA * d * 2^-6 with a small integer d; per element and window the |d| sum to at most
// 2^mantissa / odd(N * GA), odd(x) being x without its factors of 2. Then each partial sum over
// micro-steps and ranks, in any order, before or after any division by N or GA, is an integer times
// a power of two within the mantissa of the type, and so is the mean, d's sum times 2^-6. Where
// the budget is too small for all, an element gets few contributions, each element others. All of a
// parameter's are times 2^gradient_exponent, which changes nothing of that.
class Gradients {
  public:
    // `ranks` as the case has them at that point of the program.
    Gradients(const Case& c, int ranks);

    // Local gradient of one use, unscaled.
    double value(const Contribution& from, std::size_t parameter, std::size_t element) const;
    // All of a parameter's, of one use.
    void fill(const Contribution& from, std::size_t parameter, std::vector<float>& values) const;

    // Whether a rank uses a parameter in a micro-step; elsewhere its gradient is zero.
    bool is_used(std::size_t parameter, int rank, std::size_t micro_step) const;

    // Whether N * GA leaves any room at all: its odd part fits the mantissa. True for 0 ranks.
    static bool can_be_exact(const Case& c, int ranks);
    // Whether sums of these gradients stay within fp16 at the largest and the smallest loss scale
    // that the case's program can come to. True for 0 ranks.
    static bool fits_fp16(const Case& c, int ranks);

    // Weight before training: below 2 in size, exact in fp32, and rounded in any narrower type.
    static double initial_weight(const Case& c, std::size_t parameter, std::size_t element);

  private:
    double exact(const Contribution& from, std::size_t parameter, std::size_t element) const;

    const Case& case_;
    int ranks_;
    std::vector<std::uint64_t> parameter_keys_;
    std::vector<const Action*> micro_steps_;  // of the program
    int budget_ = 0;                          // of the sum of |d|
    int largest_digit_ = 1;                   // of |d|
};

}  // namespace zeroproof::suites
