// Moves and reduces the memory of an operation all of whose ranks have started it.
#pragma once

#include <cstddef>
#include <span>

#include "collectives/communicator.h"

namespace zeroproof::collectives {

// An operation is done in independent slices, which any thread may carry out in any order: no two
// slices touch the same byte, and no slice reads what another writes.
class Transfer {
  public:
    // One operation per rank of the group, in rank order; for a pair, {send, receive}.
    explicit Transfer(std::span<const Operation* const> operations);

    std::size_t slices() const { return slices_; }
    // Bytes that the whole transfer reads.
    std::size_t read_bytes() const { return read_bytes_; }
    void carry_out(std::size_t slice) const;

  private:
    void reduce(std::size_t block, std::size_t begin, std::size_t end) const;
    void copy_block(std::size_t from, std::size_t from_element, std::size_t to,
                    std::size_t to_element, std::size_t elements) const;

    std::span<const Operation* const> operations_;
    std::size_t block_elements_ = 0;  // what one slice is cut from
    std::size_t blocks_ = 0;          // how many such blocks there are
    std::size_t slices_per_block_ = 0;
    std::size_t slices_ = 0;
    std::size_t read_bytes_ = 0;
};

}  // namespace zeroproof::collectives
