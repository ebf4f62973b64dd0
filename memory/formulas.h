// Bytes of model states per rank: the formulas of the ZeRO paper (arXiv 1910.02054, section 5 and
// figure 1), nominal and exact.
#pragma once

#include <cstddef>

#include "memory/dtype.h"

namespace zeroproof::memory {

// Bytes per parameter of each model state, in training with Adam.
struct StateBytes {
    std::size_t weight;
    std::size_t gradient;
    std::size_t optimizer;  // K of the paper: master weight where there is one, momentum, variance
};

// Mixed precision (fp16, bf16) has 2 + 2 + 12 bytes, K = 12: an fp32 master beside the weight.
// fp32 has 4 + 4 + 8: its weight is its own master. Both are 16 for plain data parallelism.
StateBytes state_bytes(DType weight_type);

// 16 phi, 4 phi + 12 phi / N, 2 phi + 14 phi / N, 16 phi / N for mixed precision and stages 0 to 3,
// as printed: phi parameters divide evenly by N.
double nominal_model_state_bytes(int stage, StateBytes bytes, double phi, int ranks);

// Parameter counts behind the exact figure. Padded counts are what the partition really spans.
struct Counts {
    std::size_t trainable;         // trainable parameters
    std::size_t frozen;            // weights without gradient and optimizer state
    std::size_t padded_trainable;  // trainable, rounded up as the partition does
    std::size_t padded_frozen;     // frozen, likewise; only stage 3 partitions them
};

struct ModelStates {
    std::size_t weight;
    std::size_t gradient;
    std::size_t optimizer;
    std::size_t total() const { return weight + gradient + optimizer; }
};

// Bytes on each rank once padding counts. Padded counts must be multiples of `ranks`. Replicated
// weights and gradients of stages 1 and 2 carry the padding too, since they are gathered and
// scattered in place; plain data parallelism (stage 0) has none.
// Throws std::invalid_argument for an unknown stage, no ranks, or a padded count that is none.
ModelStates exact_model_state_bytes(int stage, StateBytes bytes, const Counts& counts, int ranks);

}  // namespace zeroproof::memory
