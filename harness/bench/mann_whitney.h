// Whether one sample of times is larger than another, without assuming how times are distributed.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace zeroproof::harness {

// Mann and Whitney, Ann. Math. Statist. 18 (1947) 50: the probability that two samples of the same
// distribution stand to each other as these do or further apart, `larger` being the one that is
// expected to be larger. One-sided. Exact, also where values are equal, if neither sample has more
// than 30; otherwise the normal approximation, corrected for ties and for continuity. Throws
// std::invalid_argument if a sample is empty.
double mann_whitney_p(std::span<const double> larger, std::span<const double> smaller);

// What it gives at least for samples of these sizes without ties: 1 / C(a + b, a).
double smallest_mann_whitney_p(std::size_t a, std::size_t b);

// Holm, Scand. J. Statist. 6 (1979) 65: p-values adjusted so that comparing each with a level keeps
// the probability of any false alarm below that level, however many there are. In the same order.
std::vector<double> holm_adjusted(std::span<const double> p_values);

// Hodges and Lehmann: the median of all differences `b` minus `a`.
double hodges_lehmann_shift(std::span<const double> a, std::span<const double> b);

}  // namespace zeroproof::harness
