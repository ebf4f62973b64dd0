// The sizes of a transformer, and the parameters that follow from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "reference/layers/attention.h"
#include "reference/layers/feed_forward.h"
#include "reference/layers/normalization.h"
#include "reference/model.h"

namespace zeroproof::reference {

// gpt2: learned positions, LayerNorm, GELU, biases, dropout, one table for embedding and output
// (Radford et al.). llama: rotary positions, RMSNorm, SwiGLU, grouped queries, no biases, no
// dropout, an output table of its own (Touvron et al.).
enum class TransformerFamily { gpt2, llama };

struct TransformerShape {
    TransformerFamily family = TransformerFamily::gpt2;
    std::size_t layers = 2;
    std::size_t hidden = 64;
    std::size_t heads = 4;
    std::size_t kv_heads = 4;  // fewer than heads for grouped queries
    std::size_t feed_forward = 256;
    std::size_t vocabulary = 256;
    std::size_t sequence = 64;  // tokens of a sample
    float dropout = 0;
    double norm_epsilon = 1e-5;
    double rotary_base = 10000;

    std::size_t head_size() const { return hidden / heads; }
    bool is_gpt2() const { return family == TransformerFamily::gpt2; }
    Normalization normalization() const {
        return is_gpt2() ? Normalization::layer : Normalization::rms;
    }
    Nonlinearity nonlinearity() const {
        return is_gpt2() ? Nonlinearity::gelu : Nonlinearity::swiglu;
    }
};

// A rank's place in its tensor-parallel group.
struct ShardPlace {
    std::size_t rank = 0;
    std::size_t ranks = 1;
};

// Throws Unsupported where sizes do not divide, naming both and what would fit.
void check(const TransformerShape& shape, std::size_t tensor_parallel_ranks);

// A matrix, or a row, of the whole model, and what a rank holds of it.
struct TransformerParameter {
    std::string name;
    std::size_t rows = 1;  // of the whole model
    std::size_t columns = 1;
    // The rank's rows, in order, as [begin, end) of the whole model's, and its columns.
    struct Cut {
        std::size_t begin;
        std::size_t end;
    };
    std::vector<Cut> row_cuts;
    Cut column_cut{0, 1};
    enum class Start { zero, one, normal } start = Start::zero;
    double deviation = 0;  // of a normal start

    std::size_t local_rows() const;
    std::size_t local_columns() const { return column_cut.end - column_cut.begin; }
    bool is_shard() const { return local_rows() < rows || local_columns() < columns; }
    bool is_matrix() const { return rows > 1 && columns > 1; }
};

// Of each unit in the order of use: "embedding", "block 0", ..., "head". A unit's parameters are in
// the order in which its code takes them.
struct TransformerUnit {
    std::string name;
    std::vector<TransformerParameter> parameters;
    bool reuses_embedding = false;  // takes the embedding's first parameter, after its own
};
std::vector<TransformerUnit> transformer_units(const TransformerShape& shape, ShardPlace place);

// Elements [begin, begin + values.size()) of what the rank holds, before any training: the same
// values for an element however the parameter is cut.
void fill_start(const TransformerParameter& parameter, std::uint32_t number, std::uint64_t seed,
                std::size_t begin, std::span<float> values);

// The heads that a rank has.
AttentionShape attention_shape(const TransformerShape& shape, ShardPlace place);

}  // namespace zeroproof::reference
