#include "harness/train/train_plan.h"

#include <fmt/format.h>

#include "scenarios/json_reader.h"

namespace zeroproof::harness {

namespace {

constexpr std::size_t kByteValues = 256;

void require_divides(const char* what, std::size_t whole, int ranks) {
    if (whole % static_cast<std::size_t>(ranks) != 0)
        throw scenarios::BadInput(fmt::format(
            "--tensor-parallel {}: does not divide the model's {} of {}", ranks, what, whole));
}

}  // namespace

scenarios::TrainingPlan TrainPlan::memory_plan() const {
    const memory::DType type = reference::weight_type(precision);
    return {model,
            {.stage = stage,
             .ranks = static_cast<std::size_t>(ranks),
             .type = type,
             .bucket_elements = bucket_elements,
             .overlap = overlap,
             .prefetch = prefetch},
            {.type = type,
             .samples = samples,
             .tensor_parallel = static_cast<std::size_t>(tensor_parallel),
             .blocks_per_checkpoint = blocks_per_checkpoint,
             .partition_checkpoints = partition_checkpoints,
             .offload_checkpoints = offload_checkpoints,
             .contiguous_checkpoints = contiguous_checkpoints}};
}

void check(const TrainPlan& plan) {
    if (plan.model.vocabulary < kByteValues)
        throw scenarios::BadInput(
            fmt::format("--model {}: has a vocabulary of {}; a text of bytes takes at least {}",
                        plan.model.name, plan.model.vocabulary, kByteValues));
    require_divides("key and value heads", plan.model.kv_heads, plan.tensor_parallel);
    require_divides("feed-forward size", plan.model.feed_forward, plan.tensor_parallel);
    const bool checkpoints = plan.blocks_per_checkpoint > 0;
    if (plan.partition_checkpoints && (!checkpoints || plan.tensor_parallel == 1))
        throw scenarios::BadInput(
            "--partition-activations: needs --recompute, and --tensor-parallel above 1: it "
            "partitions checkpoints of activations that the ranks of such a group would all keep");
    if (plan.offload_checkpoints && !checkpoints)
        throw scenarios::BadInput("--offload-activations: needs --recompute: it moves checkpoints");
    if (plan.contiguous_checkpoints && !checkpoints)
        throw scenarios::BadInput("--contiguous-activations: needs --recompute");
}

}  // namespace zeroproof::harness
