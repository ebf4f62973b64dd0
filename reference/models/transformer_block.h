// One block of a transformer, forward and backward written out.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "collectives/communicator.h"
#include "reference/layers/dropout.h"
#include "reference/model.h"
#include "reference/models/transformer_shape.h"

namespace zeroproof::reference {

// What a block is made from.
struct BlockSetup {
    const TransformerShape& shape;
    ShardPlace place;
    std::size_t samples = 1;  // of a micro-step
    collectives::Communicator* tensor_parallel = nullptr;
    memory::Space& space;

    std::size_t tokens() const { return samples * shape.sequence; }
    std::size_t local_feed_forward() const { return shape.feed_forward / place.ranks; }
    std::size_t hidden_elements() const { return tokens() * shape.hidden; }
};

// The dropout of each sample at each site of a block; empty lists where there is none.
struct BlockDropout {
    std::vector<Dropout> probabilities;
    std::vector<Dropout> attention;
    std::vector<Dropout> feed_forward;
};

// What forward leaves for backward, by place: n tokens of h columns, q of the rank's queries, kv of
// its keys, f of its feed-forward layer, a heads.
struct BlockActivations {
    memory::Buffer input;        // n h
    memory::Buffer statistics1;  // 2 n
    memory::Buffer normalized1;  // n h
    memory::Buffer qkv;          // n (q + 2 kv)
    memory::Buffer log_sums;     // n a
    memory::Buffer attended;     // n q
    memory::Buffer middle;       // n h, between the two halves of the block
    memory::Buffer statistics2;  // 2 n
    memory::Buffer normalized2;  // n h
    memory::Buffer up;           // n f for GELU, 2 n f for SwiGLU
    memory::Buffer activated;    // n f
};

enum class BlockOutput { wanted, not_wanted };

// x + dropout(attention(norm(x))), and of that, y, y + dropout(feed_forward(norm(y))): the output,
// n h, or nothing where it is not wanted. `weights` as transformer_units has them. What backward
// needs goes to `kept`, the input included.
template <typename T>
memory::Buffer block_forward(const BlockSetup& setup, const BlockDropout& dropout,
                             std::span<const ConstTensor> weights, memory::Buffer input,
                             BlockOutput output, BlockActivations& kept);

// Turns the gradient of the output into that of the input, in place, and adds those of the weights
// to theirs. Each activation is freed once it is not needed any more.
template <typename T>
void block_backward(const BlockSetup& setup, const BlockDropout& dropout,
                    std::span<const ConstTensor> weights, BlockActivations kept,
                    Matrix<T> stream_gradient, std::span<const Tensor> weight_gradients);

}  // namespace zeroproof::reference
