// The bytes of a transformer's activations, forward and backward, without any element.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "memory/dtype.h"
#include "scenarios/planner/planned_bytes.h"
#include "scenarios/planner/planned_stage.h"
#include "scenarios/transformer_model.h"

namespace zeroproof::scenarios {

struct ActivationOptions {
    memory::DType type = memory::DType::fp32;
    std::size_t samples = 1;  // of a micro-step
    std::size_t tensor_parallel = 1;
    std::size_t blocks_per_checkpoint = 0;  // 0 keeps all activations
    bool partition_checkpoints = false;     // Pa, over the tensor-parallel ranks
    bool offload_checkpoints = false;       // to the host: Pa+cpu
    bool contiguous_checkpoints = false;    // MD
};

// A rank's parameters, in the units "embedding", "block 0", ..., "head".
PlannedModel planned_model(const TransformerModel& model, std::size_t tensor_parallel);

// Elements of a checkpoint that a rank keeps: s h b, or with Pa its N-th part, rounded up.
std::size_t checkpoint_elements(const TransformerModel& model, const ActivationOptions& options);

// Bytes that a block keeps from forward for backward, for n tokens of h columns, q of the rank's
// queries, kv of its keys, f of its feed-forward layer, a heads, in elements of w bytes:
//   w n (4 h + 2 q + 2 kv + 2 f [GELU] or 3 f [SwiGLU]) + 4 n (a + 4)
// the input, what each normalization gives, queries, keys and values, what attention gives, the
// stream between the halves, the feed-forward layer before and after its nonlinearity; in fp32 the
// logarithm of each softmax's sum, and two numbers a token for each normalization. With h = q = kv
// and f = 4 h that is 16 n h elements: 32 s b h bytes in 16-bit types, where Korthikanti et al.
// (arXiv 2205.05198, equation 1) have 34 with three masks of dropout, which are drawn again here,
// and 5 a s / h of scores, which are not kept.
std::size_t block_activation_bytes(const TransformerModel& model, const ActivationOptions& options);

// Told what a transformer is told, it takes and returns what the transformer would.
class PlannedTransformer {
  public:
    PlannedTransformer(const TransformerModel& model, const ActivationOptions& options,
                       memory::Ledger& device, memory::Ledger& host);

    struct Segment {
        std::size_t begin;  // units
        std::size_t end;
    };
    const std::vector<Segment>& recomputed() const { return segments_; }
    enum class Pass { train, recompute };

    void set_batch();
    void forward(std::size_t unit, Pass pass);
    void restore(std::size_t segment);
    void backward(std::size_t unit);

  private:
    // What one block keeps, in the order in which it is taken.
    struct Block {
        PlannedBytes input, statistics1, normalized1, qkv, log_sums, attended, middle, statistics2,
            normalized2, up, activated;
    };

    PlannedBytes rows(std::size_t columns) const;       // for each token, in the type of weights
    PlannedBytes computed(std::size_t elements) const;  // in fp32
    PlannedBytes take(std::size_t elements) const;      // in the type of weights
    struct ScoreTile {
        PlannedBytes computed, rounded;
    };
    ScoreTile score_tile() const;
    void block_forward(std::size_t layer, Pass pass);
    void block_backward(std::size_t layer);
    void head_forward();
    void head_backward();
    void normalize_backward();
    void bias_backward(std::size_t columns);
    std::optional<std::size_t> segment_of(std::size_t unit) const;
    PlannedBytes checkpoint_part(memory::Ledger& ledger, memory::Category category) const;
    void put(std::size_t segment);

    TransformerModel model_;
    ActivationOptions options_;
    memory::Ledger& device_;
    memory::Ledger& host_;
    std::size_t width_;
    std::size_t n_, h_, q_, kv_, f_, up_, heads_;
    std::vector<Segment> segments_;
    std::vector<PlannedBytes> checkpoints_;
    PlannedBytes arena_;
    PlannedBytes leaving_;
    PlannedBytes returning_;
    PlannedBytes batch_;
    PlannedBytes stream_;
    PlannedBytes stream_gradient_;
    std::vector<Block> blocks_;
    PlannedBytes head_input_, head_statistics_, head_normalized_;
};

}  // namespace zeroproof::scenarios
