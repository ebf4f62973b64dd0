// Random numbers by counting: the n-th number of a stream depends on the stream's key and on n
// alone.
#pragma once

#include <array>
#include <cstdint>

namespace zeroproof::reference {

// Philox4x32-10 (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, section 3): four
// numbers of 32 bits for each counter of 128 bits under a key of 64.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

}  // namespace zeroproof::reference
