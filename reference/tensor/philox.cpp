#include "reference/tensor/philox.h"

namespace zeroproof::reference {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> c,
                                    std::array<std::uint32_t, 2> k) {
    constexpr int kRounds = 10;
    for (int round = 0; round < kRounds; ++round) {
        const std::uint64_t even = std::uint64_t{0xD2511F53u} * c[0];
        const std::uint64_t odd = std::uint64_t{0xCD9E8D57u} * c[2];
        c = {static_cast<std::uint32_t>(odd >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(odd),
             static_cast<std::uint32_t>(even >> 32) ^ c[3] ^ k[1],
             static_cast<std::uint32_t>(even)};
        k = {k[0] + 0x9E3779B9u, k[1] + 0xBB67AE85u};
    }
    return c;
}

}  // namespace zeroproof::reference
