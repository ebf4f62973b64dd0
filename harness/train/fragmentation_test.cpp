// ZeRO-R's MD, on the allocations of real training runs, replayed by the model of a caching
// allocator: where checkpoints of activations lie between what lives shorter, a request fails that
// the free bytes would satisfy.
#include <gtest/gtest.h>

#include "harness/train/run_training.h"
#include "memory/replay.h"

namespace zeroproof::harness {
namespace {

memory::AllocationTrace allocations_of_training(int stage, bool contiguous_checkpoints) {
    TrainRecord record;
    record.plan.model = scenarios::load_transformer_model("gpt2-10m");
    record.plan.precision = reference::Precision::fp16;
    record.plan.stage = stage;
    record.plan.steps = 2;
    record.plan.blocks_per_checkpoint = 1;
    record.plan.contiguous_checkpoints = contiguous_checkpoints;
    record.plan.records_allocations = true;
    const TextFile& text = text_files().front();
    const TextData data(std::string(text.text), std::string(text.name), record.plan.model.sequence);
    run_training(data, {}, record);
    return std::move(record.by_rank.front().allocations);
}

class MemoryDefragmentation : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Stage, MemoryDefragmentation, testing::Values(0, 2));

TEST_P(MemoryDefragmentation, GoesThroughWhereFragmentsWouldFail) {
    const memory::AllocationTrace scattered = allocations_of_training(GetParam(), false);
    const memory::AllocationTrace contiguous = allocations_of_training(GetParam(), true);
    const std::size_t capacity_bytes = memory::smallest_capacity(contiguous);

    EXPECT_TRUE(memory::replay(contiguous, capacity_bytes).went_through());
    const memory::ReplayResult without = memory::replay(scattered, capacity_bytes);
    ASSERT_TRUE(without.failure.has_value());
    EXPECT_TRUE(without.failure->fragmentation);
    EXPECT_GE(without.failure->free_bytes, without.failure->asked_bytes);
    EXPECT_LT(without.failure->largest_free_block_bytes, without.failure->asked_bytes);
}

}  // namespace
}  // namespace zeroproof::harness
