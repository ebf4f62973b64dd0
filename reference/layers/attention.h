// Causal attention (Vaswani et al., section 3.2) with grouped queries (Ainslie et al.) and rotary
// positions (Su et al.).
#pragma once

#include <cstddef>
#include <span>

#include "reference/layers/dropout.h"
#include "reference/tensor/matrix.h"
#include "reference/tensor/scalar.h"

namespace zeroproof::reference {

// The heads that a rank has. Each key and value is used by heads / kv_heads neighbouring queries.
// A row of queries, keys and values, one after the other, is one token's:
//   | q of head 0 | q of head 1 | ... | k of kv head 0 | ... | v of kv head 0 | ... |
struct AttentionShape {
    std::size_t heads = 1;
    std::size_t kv_heads = 1;
    std::size_t head_size = 1;
    std::size_t sequence = 1;    // tokens of one sample
    std::size_t first_head = 0;  // of the whole model, whose heads are shared out

    std::size_t query_columns() const { return heads * head_size; }
    std::size_t qkv_columns() const { return (heads + 2 * kv_heads) * head_size; }
};

// Rows of scores that are computed at a time: never all of sequence x sequence, and of one head.
inline constexpr std::size_t kAttentionTile = 128;

// Of each sample, softmax(q k^T / sqrt(head size)) v, where no token sees a later one. `qkv` has a
// row for each token of all samples, `output` one of heads * head_size columns. `log_sums`, which
// backward needs again, gets the logarithm of each row's sum of exponentials: samples x heads x
// sequence, in one row for each sample and head. `dropout`, of the probabilities, has one entry a
// sample, or none.
template <typename T>
void attend(const AttentionShape& shape, Matrix<const T> qkv, std::span<const Dropout> dropout,
            Matrix<T> output, Matrix<Compute<T>> log_sums, memory::Space& space);

// `qkv_gradient`, from that of the output. Probabilities are computed again, a tile at a time.
template <typename T>
void attend_backward(const AttentionShape& shape, Matrix<const T> qkv,
                     std::span<const Dropout> dropout, Matrix<const Compute<T>> log_sums,
                     Matrix<const T> output_gradient, Matrix<T> qkv_gradient, memory::Space& space);

enum class Rotation { forward, backward };

// Turns each pair (j, j + head_size / 2) of each query and key by the angle position * base^(-2 j /
// head_size), or back: backward does it to gradients.
template <typename T>
void rotate(const AttentionShape& shape, double base, Rotation direction, Matrix<T> qkv);

}  // namespace zeroproof::reference
