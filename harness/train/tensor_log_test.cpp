// What is written down of a run, whoever owned it.
#include "harness/train/tensor_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "harness/protocol/safetensors.h"
#include "harness/temporary_folder.h"
#include "harness/train/run_training.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {
namespace {

// Slices of three ranks begin and end anywhere in a parameter.
TrainPlan tiny(int stage) {
    TrainPlan plan;
    plan.model = scenarios::load_transformer_model("llama-tiny");
    plan.stage = stage;
    plan.ranks = 3;
    plan.samples = 1;
    plan.micro_steps = 2;
    plan.steps = 2;
    plan.bucket_elements = 1000;
    return plan;
}

SafetensorsReader written(const TrainPlan& plan, const TemporaryFolder& folder) {
    TensorLog log(plan);
    TrainRecord record;
    record.plan = plan;
    const TextData data(std::string(text_files().front().text), "text", plan.model.sequence);
    run_training(data, {.tensors = &log}, record);
    EXPECT_TRUE(record.complete) << record.ended_by;
    std::ofstream(folder.path() / "tensors", std::ios::binary) << log.bytes();
    return SafetensorsReader(UntrustedFile::demand(folder.path(), "tensors", 1 << 24));
}

std::vector<float> values_of(const SafetensorsReader& reader, const std::string& name) {
    return reader.floats(name, reader.tensors().at(name).shape);
}

bool is_log(const std::string& name) {
    return name != "tokens" && name != "targets";
}

// Catches slices that are left out, or put where others belong. Ranks add in the same order in all
// stages, but micro-steps are summed before or after them.
TEST(TensorLog, IsWholeAndTheSameInEveryStage) {
    const TemporaryFolder folder_of_0;
    const SafetensorsReader plain = written(tiny(0), folder_of_0);
    ASSERT_TRUE(plain.has("gradient.2.head.tokens"));
    for (const int stage : {1, 2, 3}) {
        const TemporaryFolder folder;
        const SafetensorsReader reader = written(tiny(stage), folder);
        ASSERT_EQ(reader.tensors().size(), plain.tensors().size());
        for (const auto& [name, place] : reader.tensors()) {
            if (!is_log(name)) continue;
            const std::vector<float> values = values_of(reader, name);
            const std::vector<float> expected = values_of(plain, name);
            ASSERT_EQ(values.size(), expected.size());
            float largest = 0;
            for (const float value : expected) largest = std::max(largest, std::abs(value));
            // Not those after the steps: Adam makes the same of any gradient, but for its sign.
            const float tolerance = name.starts_with("after") ? 4e-4f : 1e-4f * largest;
            for (std::size_t i = 0; i < values.size(); ++i)
                ASSERT_NEAR(values[i], expected[i], tolerance) << name << " " << i << " " << stage;
        }
    }
}

// Catches a batch that is put at another rank's place.
TEST(TensorLog, TokensAreThoseOfTheRun) {
    const TemporaryFolder folder;
    const TrainPlan plan = tiny(0);
    written(plan, folder);
    std::ifstream stream(folder.path() / "tensors", std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    const TextData data(std::string(text_files().front().text), "text", plan.model.sequence);
    std::string tokens;
    for (std::uint64_t number = 0; number < 2 * plan.samples_of_step(); ++number) {
        std::vector<std::int32_t> of_sample(plan.model.sequence), next(plan.model.sequence);
        data.sample(plan.seed, number, of_sample, next);
        tokens.append(reinterpret_cast<const char*>(of_sample.data()), 4 * of_sample.size());
    }
    EXPECT_NE(bytes.find(tokens), std::string::npos);
}

TEST(TensorLog, RefusesWhatItCannotWriteDown) {
    const auto message_of = [](const TrainPlan& plan) -> std::string {
        try {
            const TensorLog log(plan);
        } catch (const scenarios::BadInput& error) {
            return error.what();
        }
        return "nothing was wrong";
    };
    TrainPlan plan = tiny(0);
    plan.tensor_parallel = 2;
    EXPECT_NE(message_of(plan).find("needs --tensor-parallel 1"), std::string::npos);
    plan = tiny(0);
    plan.resume_from = "somewhere";
    EXPECT_NE(message_of(plan).find("not with --resume"), std::string::npos);
    plan = tiny(0);
    plan.steps = 1'000'000;
    EXPECT_NE(message_of(plan).find("fewer --steps"), std::string::npos);
}

}  // namespace
}  // namespace zeroproof::harness
