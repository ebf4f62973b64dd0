// The planned bytes of a training step against the formulas of the papers.
#include "scenarios/planner/training_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

namespace zeroproof::scenarios {
namespace {

using memory::Category;
using memory::DType;
using memory::Phase;

constexpr std::size_t kRankCounts[] = {1, 2, 3, 4, 8, 64};
constexpr int kStages[] = {0, 1, 2, 3};
constexpr DType kTypes[] = {DType::fp32, DType::bf16, DType::fp16};

// Sizes of which hardly any is a multiple of a number of ranks.
TransformerModel odd_model(TransformerFamily family, std::size_t layers = 3) {
    TransformerModel model;
    model.family = family;
    model.layers = layers;
    model.hidden = 18;
    model.heads = 3;
    model.kv_heads = family == TransformerFamily::gpt2 ? 3 : 1;
    model.feed_forward = 31;
    model.vocabulary = 101;
    model.sequence = 7;
    return model;
}

std::vector<TransformerModel> models() {
    return {odd_model(TransformerFamily::gpt2), odd_model(TransformerFamily::llama),
            load_transformer_model("gpt2-tiny"), load_transformer_model("llama-tiny")};
}

TrainingPlan plan_of(const TransformerModel& model, int stage, std::size_t ranks, DType type) {
    return {.model = model,
            .stage = {.stage = stage, .ranks = ranks, .type = type},
            .activations = {.type = type}};
}

std::size_t sum(const memory::BytesByCategory& bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), std::size_t{0});
}
std::size_t of(const memory::BytesByCategory& bytes, Category category) {
    return bytes[static_cast<std::size_t>(category)];
}

// Elements that are used, and so partitioned, together, in closed form. A linear layer has inputs x
// outputs elements; those of GPT-2 and its norms have a bias.
struct Sizes {
    std::size_t table, positions, block, head;

    explicit Sizes(const TransformerModel& m) {
        const std::size_t h = m.hidden;
        const std::size_t f = m.feed_forward;
        const std::size_t qkv = (m.heads + 2 * m.kv_heads) * m.head_size();
        table = m.vocabulary * h;
        if (m.is_gpt2()) {
            positions = m.sequence * h;
            block = (h + 1) * qkv + (h + 1) * h + (h + 1) * f + (f + 1) * h + 2 * 2 * h;
            head = 2 * h;  // the table is the embedding's
        } else {
            positions = 0;
            block = h * qkv + h * h + h * 2 * f + f * h + 2 * h;
            head = h + table;
        }
    }
    std::size_t phi(std::size_t layers) const { return table + positions + layers * block + head; }
};

std::size_t up(std::size_t value, std::size_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

// Stages 1 and 2 partition all parameters end to end, stage 3 those of each unit, and the table
// that GPT-2's first and last unit share, by themselves.
std::size_t padded(const TransformerModel& m, int stage, std::size_t ranks) {
    const Sizes s(m);
    if (stage < 3) return up(s.phi(m.layers), ranks);
    return up(s.table, ranks) + up(s.positions, ranks) + m.layers * up(s.block, ranks) +
           up(s.head, ranks);
}
std::size_t sets(const TransformerModel& m, int stage) {
    return stage < 3 ? 1 : m.layers + (m.is_gpt2() ? 3 : 2);
}

// Catches a parameter that is counted twice (the tied table) or not at all, padding that is not the
// partition's, and a state that is partitioned in the wrong stage. To the byte.
TEST(TrainingMemory, StatesAtRestAreTheFormulas) {
    for (const TransformerModel& model : models())
        for (const std::size_t ranks : kRankCounts)
            for (const int stage : kStages)
                for (const DType type : kTypes) {
                    SCOPED_TRACE(testing::Message()
                                 << name_of(model.family) << " of hidden " << model.hidden
                                 << ", stage " << stage << ", " << ranks << " ranks, "
                                 << memory::name_of(type));
                    const TrainingMemory planned = plan_memory(plan_of(model, stage, ranks, type));
                    const std::size_t phi = Sizes(model).phi(model.layers);
                    EXPECT_EQ(planned.counts.trainable, phi);
                    EXPECT_EQ(planned.counts.frozen, 0u);
                    EXPECT_EQ(planned.counts.padded_trainable, padded(model, stage, ranks));
                    const memory::ModelStates states = exact_model_state_bytes(
                        stage, memory::state_bytes(type), {phi, 0, padded(model, stage, ranks), 0},
                        static_cast<int>(ranks));
                    EXPECT_EQ(of(planned.at_rest, Category::parameter), states.weight);
                    EXPECT_EQ(of(planned.at_rest, Category::gradient), states.gradient);
                    const std::size_t master = of(planned.at_rest, Category::master);
                    const std::size_t momentum = of(planned.at_rest, Category::momentum);
                    EXPECT_EQ(master, type == DType::fp32 ? 0 : momentum);
                    EXPECT_EQ(of(planned.at_rest, Category::variance), momentum);
                    EXPECT_EQ(master + 2 * momentum, states.optimizer);
                    EXPECT_EQ(sum(planned.at_rest), states.total());
                }
}

// Bytes for each parameter, as the ZeRO paper prints them (figure 1): 16, 4 + 12 / N, 2 + 14 / N,
// 16 / N.
double printed(int stage, double ranks) {
    switch (stage) {
        case 0: return 16;
        case 1: return 4 + 12 / ranks;
        case 2: return 2 + 14 / ranks;
        default: return 16 / ranks;
    }
}

// Deeper models differ by their blocks alone. Catches a formula that is right for one model by
// chance: the slope has no room for a constant.
//
// Bytes at rest are the printed ones for each padded parameter, and padding is less than N for each
// set of parameters that is partitioned; between two models it differs by less than N (sets) of the
// deeper one.
TEST(TrainingMemory, BytesForEachParameterAreThoseOfTheZeroPaper) {
    for (const auto family : {TransformerFamily::gpt2, TransformerFamily::llama})
        for (const std::size_t ranks : kRankCounts)
            for (const int stage : kStages) {
                const TransformerModel shallow = odd_model(family, 2);
                const TransformerModel deep = odd_model(family, 60);
                const auto at_rest = [&](const TransformerModel& model) {
                    return static_cast<double>(
                        sum(plan_memory(plan_of(model, stage, ranks, DType::fp16)).at_rest));
                };
                const auto difference = static_cast<double>(58 * Sizes(deep).block);
                const double slope = (at_rest(deep) - at_rest(shallow)) / difference;
                const double bytes = printed(stage, static_cast<double>(ranks));
                const double padding =
                    stage == 0 ? 0 : static_cast<double>(sets(deep, stage) * (ranks - 1));
                EXPECT_NEAR(slope, bytes, bytes * padding / difference + 1e-12)
                    << "stage " << stage << ", " << ranks << " ranks";
            }
}

// The other slope: what one rank saves as their number grows. Catches a state that is divided by
// another number than N.
TEST(TrainingMemory, MoreRanksSaveWhatTheZeroPaperSays) {
    for (const TransformerModel& model : models())
        for (const int stage : kStages)
            for (std::size_t i = 0; i + 1 < std::size(kRankCounts); ++i) {
                const std::size_t few = kRankCounts[i];
                const std::size_t many = kRankCounts[i + 1];
                const auto at_rest = [&](std::size_t ranks) {
                    return static_cast<double>(
                        sum(plan_memory(plan_of(model, stage, ranks, DType::bf16)).at_rest));
                };
                const auto bytes = [&](std::size_t ranks) {
                    return printed(stage, static_cast<double>(ranks));
                };
                const auto phi = static_cast<double>(Sizes(model).phi(model.layers));
                // Less than N elements of padding for each set, on either side.
                const double padding =
                    stage == 0 ? 0
                               : static_cast<double>(sets(model, stage)) *
                                     std::max(bytes(few) * static_cast<double>(few - 1),
                                              bytes(many) * static_cast<double>(many - 1));
                EXPECT_NEAR((at_rest(few) - at_rest(many)) / phi, bytes(few) - bytes(many),
                            padding / phi + 1e-12)
                    << "stage " << stage << ", " << few << " and " << many << " ranks";
            }
}

// A rank of a tensor-parallel group has its part of what is cut, and all of the rest: norms, the
// biases that are added once, and tables.
TEST(TrainingMemory, TensorParallelRanksShareTheMatrices) {
    for (const char* name : {"gpt2-tiny", "llama-tiny"})
        for (const std::size_t group : {1u, 2u}) {
            const TransformerModel m = load_transformer_model(name);
            TrainingPlan plan = plan_of(m, 0, 1, DType::fp32);
            plan.activations.tensor_parallel = group;
            const std::size_t h = m.hidden;
            const std::size_t uncut = m.is_gpt2() ? 2 * 2 * h + 2 * h : 2 * h;
            const Sizes sizes(m);
            EXPECT_EQ(plan_memory(plan).counts.trainable,
                      sizes.table + sizes.positions + sizes.head +
                          m.layers * (uncut + (sizes.block - uncut) / group))
                << name;
        }
}

// n tokens of h columns, and of each block what the header lists, in closed form.
std::size_t block_bytes(const TransformerModel& m, std::size_t n, std::size_t width,
                        std::size_t group) {
    const std::size_t q = m.hidden / group;
    const std::size_t kv = m.kv_heads * m.head_size() / group;
    const std::size_t f = m.feed_forward / group;
    const std::size_t rounded = m.hidden                     // the input
                                + m.hidden                   // normalized
                                + (q + 2 * kv)               // queries, keys, values
                                + q                          // attended
                                + m.hidden                   // between the halves
                                + m.hidden                   // normalized
                                + (m.is_gpt2() ? 1 : 2) * f  // before the nonlinearity
                                + f;                         // and after it
    const std::size_t computed = 2 + m.heads / group + 2;    // statistics, log sums, statistics
    return n * (width * rounded + 4 * computed);
}

TEST(TrainingMemory, ABlockKeepsWhatIsListed) {
    for (const char* name : {"gpt2-tiny", "llama-tiny", "gpt2-small", "llama-small"})
        for (const DType type : kTypes)
            for (const std::size_t group : {1u, 2u}) {
                const TransformerModel model = load_transformer_model(name);
                EXPECT_EQ(block_activation_bytes(
                              model, {.type = type, .samples = 3, .tensor_parallel = group}),
                          block_bytes(model, 3 * model.sequence, memory::size_of(type), group))
                    << name;
            }
}

// With h = q = kv and f = 4 h: 32 s b h bytes in 16-bit types, where Korthikanti et al. (arXiv
// 2205.05198, equation 1) have 34 and three masks more, and 4 s b (a + 4) of fp32.
TEST(TrainingMemory, ABlockOfGpt2KeepsThirtyTwoBytesForEachElement) {
    const TransformerModel model = load_transformer_model("gpt2-1.5b");
    const std::size_t tokens = 2 * model.sequence;
    EXPECT_EQ(block_activation_bytes(model, {.type = DType::fp16, .samples = 2}),
              32 * tokens * model.hidden + 4 * tokens * (model.heads + 4));
}

// Calls `check(plan, segments)` for every way to place activations.
template <typename Check>
void for_each_placement(const TransformerModel& model, const Check& check) {
    for (const DType type : kTypes)
        for (const std::size_t group : {1u, 2u})
            for (const std::size_t blocks : {0u, 1u, 2u, 100u})
                for (int options = 0; options < 8; ++options) {
                    TrainingPlan plan = plan_of(model, 1, 4, type);
                    plan.activations.samples = 3;
                    plan.activations.tensor_parallel = group;
                    plan.activations.blocks_per_checkpoint = blocks;
                    plan.activations.partition_checkpoints = (options & 1) != 0;
                    plan.activations.offload_checkpoints = (options & 2) != 0;
                    plan.activations.contiguous_checkpoints = (options & 4) != 0;
                    if (blocks == 0 && options != 0) continue;
                    SCOPED_TRACE(testing::Message() << "group of " << group << ", " << blocks
                                                    << " blocks, options " << options);
                    check(plan, blocks == 0 ? 0 : (model.layers + blocks - 1) / blocks);
                }
}

// What is live once forward has ended, in closed form:
//   the batch      a token and a target of 4 bytes each
//   the blocks     what each keeps, or nothing where it is computed again
//   the head       its input, which is the last block's output, and that normalized, n h each in
//   the
//                  type, with two numbers of fp32 for each token
//   checkpoints    n h for each segment, with Pa divided by the ranks of the group; on the host
//   none
// and nothing of the embedding beside the first block's input. Catches what is kept by mistake from
// forward to backward, and what is not.
TEST(TrainingMemory, ActivationsAfterForwardAreTheSum) {
    for (const char* name : {"gpt2-tiny", "llama-tiny"}) {
        const TransformerModel m = load_transformer_model(name);
        for_each_placement(m, [&](const TrainingPlan& plan, std::size_t segments) {
            const ActivationOptions& options = plan.activations;
            const std::size_t width = memory::size_of(options.type);
            const std::size_t n = options.samples * m.sequence;
            const std::size_t parts =
                options.partition_checkpoints ? options.tensor_parallel : 1;  // which divide n h
            const TrainingMemory planned = plan_memory(plan);
            EXPECT_EQ(of(planned.after_forward, Category::activation),
                      2 * 4 * n +
                          (segments == 0 ? m.layers : 0) *
                              block_bytes(m, n, width, options.tensor_parallel) +
                          2 * n * m.hidden * width + 2 * 4 * n);
            const std::size_t kept = segments * n * m.hidden / parts * width;
            EXPECT_EQ(of(planned.after_forward, Category::checkpoint),
                      options.offload_checkpoints ? 0 : kept);
            EXPECT_EQ(planned.host_peak_bytes, options.offload_checkpoints ? kept : 0u);
            // All that travelled has arrived, and states are as they were.
            EXPECT_EQ(of(planned.after_forward, Category::buffer), 0u);
            for (const Category state : {Category::parameter, Category::gradient, Category::master,
                                         Category::momentum, Category::variance})
                EXPECT_EQ(of(planned.after_forward, state), of(planned.at_rest, state));
        });
    }
}

// Pa keeps the N-th part, rounded up. Catches a part that is rounded down.
TEST(TrainingMemory, PartitionedCheckpointsAreRoundedUp) {
    TransformerModel model = odd_model(TransformerFamily::gpt2);
    for (const std::size_t ranks : {1u, 2u, 3u, 4u, 5u, 16u})
        EXPECT_EQ(
            checkpoint_elements(model, {.tensor_parallel = ranks, .partition_checkpoints = true}),
            (7 * 18 + ranks - 1) / ranks);
    EXPECT_EQ(checkpoint_elements(model, {.samples = 5, .tensor_parallel = 4}), 5u * 7 * 18);
}

// ZeRO paper, section 6.1: a model of 100 billion parameters, batch 32, sequence 1024, and one
// checkpoint for each layer take "about 33 GB" on each rank of a model-parallel group of 16, and
// with Pa "about 2 GB". These are numbers of elements: 32 x 1024 x 8192 x 125 = 33.55e9 of them
// are 67.1e9 bytes in fp16, and with Pa 2.1e9 of them 4.2e9 bytes. Elements and bytes are given
// here as they are; the ratio of 16 is the same.
TEST(TrainingMemory, PartitionedCheckpointsOfTheZeroPaper) {
    const TransformerModel model = load_transformer_model("zero-100b");
    ActivationOptions options{
        .type = DType::fp16, .samples = 32, .tensor_parallel = 16, .blocks_per_checkpoint = 1};
    ASSERT_EQ(model.sequence, 1024u);
    EXPECT_EQ(model.layers * checkpoint_elements(model, options), 33'554'432'000u);
    options.partition_checkpoints = true;
    EXPECT_EQ(model.layers * checkpoint_elements(model, options), 2'097'152'000u);

    TrainingPlan plan = plan_of(model, 1, 25, DType::fp16);
    plan.activations = options;
    EXPECT_EQ(of(plan_memory(plan).after_forward, Category::checkpoint), 4'194'304'000u);
    plan.activations.partition_checkpoints = false;
    EXPECT_EQ(of(plan_memory(plan).after_forward, Category::checkpoint), 67'108'864'000u);
    // Pa+cpu: "nearly zero".
    plan.activations.offload_checkpoints = true;
    EXPECT_EQ(of(plan_memory(plan).after_forward, Category::checkpoint), 0u);
}

// Elements of the largest model whose states fit: one that grows by a row of its table.
double largest_phi(int stage, std::size_t capacity_bytes, std::size_t ranks) {
    TransformerModel model = odd_model(TransformerFamily::llama, 1);
    const auto fits = [&](std::size_t vocabulary) {
        model.vocabulary = vocabulary;
        return sum(plan_memory(plan_of(model, stage, ranks, DType::bf16)).at_rest) <=
               capacity_bytes;
    };
    std::size_t fitting = 1;
    std::size_t beyond = std::size_t{1} << 24;
    EXPECT_TRUE(fits(fitting));
    EXPECT_FALSE(fits(beyond));
    while (beyond - fitting > 1) {
        const std::size_t middle = (fitting + beyond) / 2;
        (fits(middle) ? fitting : beyond) = middle;
    }
    model.vocabulary = fitting;
    return static_cast<double>(Sizes(model).phi(1));
}

// ZeRO paper, table 2 and figure 1: in the same memory, 64 ranks train models that are 3.8, 7.2 and
// 64 times as large as without ZeRO. Here 32 MB of it.
//
// A row more is 2 h elements, and padding is less than N for each of 3 sets: so much is missing at
// most from capacity / bytes for each parameter, some 1e-4 of the smallest of the four.
TEST(TrainingMemory, TheLargestModelsAreInTheRatiosOfTheZeroPaper) {
    constexpr std::size_t kCapacity = 32'000'000;
    constexpr std::size_t kRanks = 64;
    const double plain = largest_phi(0, kCapacity, kRanks);
    const double ratios[] = {1, 3.8, 7.2, 64};
    for (const int stage : kStages) {
        const double phi = largest_phi(stage, kCapacity, kRanks);
        const double ideal = double{kCapacity} / printed(stage, double{kRanks});
        EXPECT_LE(phi, ideal) << stage;
        EXPECT_GE(phi, ideal - 2 * 18 - 3 * double{kRanks}) << stage;
        EXPECT_EQ(std::round(10 * phi / plain) / 10, ratios[stage]) << stage;
    }
}

// What each option is for. Catches one that has no effect on the plan.
TEST(TrainingMemory, EachOptionLowersWhatItIsFor) {
    const TransformerModel model = load_transformer_model("gpt2-small");
    const auto planned = [&](auto&& change) {
        TrainingPlan plan = plan_of(model, 1, 4, DType::bf16);
        plan.activations.samples = 4;
        plan.activations.tensor_parallel = 2;
        change(plan);
        return plan_memory(plan);
    };
    const TrainingMemory whole = planned([](TrainingPlan&) {});
    const TrainingMemory again =
        planned([](TrainingPlan& p) { p.activations.blocks_per_checkpoint = 1; });
    const TrainingMemory parts = planned([](TrainingPlan& p) {
        p.activations.blocks_per_checkpoint = 1;
        p.activations.partition_checkpoints = true;
    });
    const TrainingMemory away = planned([](TrainingPlan& p) {
        p.activations.blocks_per_checkpoint = 1;
        p.activations.offload_checkpoints = true;
    });
    EXPECT_LT(again.largest_peak_bytes(), whole.largest_peak_bytes());
    EXPECT_LT(parts.largest_peak_bytes(), again.largest_peak_bytes());
    EXPECT_LT(away.largest_peak_bytes(), again.largest_peak_bytes());
    const auto peak = [](const TrainingMemory& of, Category category) {
        return of.peak_bytes_by_category[static_cast<std::size_t>(Phase::forward)]
                                        [static_cast<std::size_t>(category)];
    };
    EXPECT_EQ(2 * peak(parts, Category::checkpoint), peak(again, Category::checkpoint));
    EXPECT_EQ(peak(away, Category::checkpoint), 0u);
    // One checkpoint at a time is on its way.
    EXPECT_EQ(peak(away, Category::buffer), 4 * model.sequence * model.hidden * 2);

    // Smaller buckets, and none that travels beside the next.
    const auto with_buckets = [&](std::size_t elements, bool overlap) {
        return planned([&](TrainingPlan& p) {
                   p.stage.stage = 2;
                   p.stage.bucket_elements = elements;
                   p.stage.overlap = overlap;
               })
            .peak_bytes_by_category[static_cast<std::size_t>(Phase::backward)]
                                   [static_cast<std::size_t>(Category::buffer)];
    };
    EXPECT_LT(with_buckets(1 << 12, true), with_buckets(1 << 16, true));
    EXPECT_LT(with_buckets(1 << 14, false), with_buckets(1 << 14, true));
    // Stage 3 holds one unit's weights, or with prefetch two.
    const auto gathered = [&](bool prefetch) {
        return peak(planned([&](TrainingPlan& p) {
                        p.stage.stage = 3;
                        p.stage.prefetch = prefetch;
                    }),
                    Category::parameter);
    };
    EXPECT_LT(gathered(false), gathered(true));
}

// A step is like every other: no phase ends above its peak, and the last leaves what was there.
TEST(TrainingMemory, PeaksCoverWhatIsLive) {
    for (const TransformerModel& model : models())
        for (const int stage : kStages) {
            const TrainingMemory planned = plan_memory(plan_of(model, stage, 3, DType::bf16));
            const auto peak = [&](Phase phase) {
                return planned.peak_bytes[static_cast<std::size_t>(phase)];
            };
            EXPECT_GE(peak(Phase::forward), sum(planned.after_forward));
            EXPECT_GE(peak(Phase::backward), sum(planned.after_forward));
            EXPECT_EQ(peak(Phase::step), sum(planned.at_rest));
            EXPECT_EQ(planned.largest_peak_bytes(),
                      std::max(peak(Phase::forward), peak(Phase::backward)));
        }
}

}  // namespace
}  // namespace zeroproof::scenarios
