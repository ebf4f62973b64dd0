#include "harness/subjects/transformer_shape.h"

namespace zeroproof::harness {

reference::TransformerShape shape_of(const scenarios::TransformerModel& model) {
    using Family = reference::TransformerFamily;
    return {.family = model.is_gpt2() ? Family::gpt2 : Family::llama,
            .layers = model.layers,
            .hidden = model.hidden,
            .heads = model.heads,
            .kv_heads = model.kv_heads,
            .feed_forward = model.feed_forward,
            .vocabulary = model.vocabulary,
            .sequence = model.sequence,
            .dropout = static_cast<float>(model.dropout)};
}

}  // namespace zeroproof::harness
