// Inputs of timed operations whose results are known exactly, in every type.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "memory/dtype.h"

namespace zeroproof::harness {

// Small integers. Of each element one rank holds w, the next 2 w, and the others 0, so that a sum
// over at least two ranks is 3 w, w in 1 to 13 by the element's place: a contribution that is
// dropped, doubled or put elsewhere changes it. In the type of the operation, every 13 N elements
// the same.
class ExactInputs {
  public:
    ExactInputs(memory::DType type, int ranks) : type_(type), ranks_(ranks) {}

    double value(int rank, std::size_t element) const;
    double sum(std::size_t element) const;

    // Elements [begin, begin + elements) of what `rank` holds.
    void fill(int rank, std::size_t begin, std::size_t elements, std::byte* data) const;
    // The first element of `data` that is not element begin + i of what `rank` holds (of the sum:
    // rank -1), in words; empty if there is none.
    std::string difference(int rank, std::size_t begin, std::size_t elements,
                           const std::byte* data) const;

  private:
    // `elements` of a rank or the sum, from `begin`.
    std::vector<std::byte> pattern(int rank, std::size_t begin, std::size_t elements) const;

    memory::DType type_;
    int ranks_;
};

}  // namespace zeroproof::harness
