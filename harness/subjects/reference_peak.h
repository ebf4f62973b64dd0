// How many bytes the reference needs at most, told from the case alone, before any run.
#pragma once

#include <optional>

#include "memory/ledger.h"
#include "suites/conformance/case.h"

namespace zeroproof::harness {

// In forward, backward or step; the same on every rank. Beside model states these are live:
//   forward   stage 3: the weights of the unit and, with prefetch, of the next
//   backward  the gradient of the unit; stage 3: weights as in forward; stages 2 and 3: the buckets
//             that fill, and one that travels with the part of it that is received
std::size_t reference_peak_bytes(const suites::Case& c, memory::Phase phase);

// The most of each category, of a case that trains a transformer; others say nothing.
std::optional<memory::BytesByCategory> reference_peak_bytes_by_category(const suites::Case& c,
                                                                        memory::Phase phase);

}  // namespace zeroproof::harness
