#include "suites/conformance/transformer_plan.h"

#include <algorithm>

namespace zeroproof::suites {

scenarios::TrainingPlan training_plan(const Case& c) {
    const TransformerCase& t = *c.transformer;
    const memory::DType type = weight_type(c.precision);
    return {t.model,
            {.stage = c.stage,
             .ranks = static_cast<std::size_t>(c.ranks),
             .type = type,
             .bucket_elements = c.bucket_elements,
             .overlap = c.overlap,
             .prefetch = c.prefetch},
            {.type = type,
             .samples = t.samples,
             .tensor_parallel = static_cast<std::size_t>(t.tensor_parallel),
             .blocks_per_checkpoint = t.blocks_per_checkpoint,
             .partition_checkpoints = t.partition_checkpoints,
             .offload_checkpoints = t.offload_checkpoints,
             .contiguous_checkpoints = t.contiguous_checkpoints}};
}

std::vector<scenarios::PlannedTransformer::Segment> recomputed_segments(const Case& c) {
    std::vector<scenarios::PlannedTransformer::Segment> segments;
    if (!c.transformer || c.transformer->blocks_per_checkpoint == 0) return segments;
    const std::size_t layers = c.transformer->model.layers;
    const std::size_t step = c.transformer->blocks_per_checkpoint;
    for (std::size_t first = 0; first < layers; first += step)
        segments.push_back({1 + first, 1 + std::min(first + step, layers)});
    return segments;
}

std::size_t checkpoint_bytes(const Case& c) {
    return scenarios::checkpoint_elements(c.transformer->model, training_plan(c).activations) *
           memory::size_of(weight_type(c.precision));
}

}  // namespace zeroproof::suites
