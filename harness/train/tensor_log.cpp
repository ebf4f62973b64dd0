#include "harness/train/tensor_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "harness/protocol/safetensors.h"
#include "harness/train/train_rank.h"
#include "reference/kernels.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {

namespace {

using scenarios::Json;

// All of it is in memory until the run has ended.
constexpr std::size_t kMostBytes = std::size_t{1} << 30;

// Ranks that own all of it have the same: the first one speaks for them.
bool speaks(reference::Stage& stage) {
    return stage.is_partitioned() || stage.rank() == 0;
}

Json as_json(const reference::TransformerShape& shape) {
    return {{"family", shape.is_gpt2() ? "gpt2" : "llama"},
            {"layers", shape.layers},
            {"hidden", shape.hidden},
            {"heads", shape.heads},
            {"kv_heads", shape.kv_heads},
            {"feed_forward", shape.feed_forward},
            {"vocabulary", shape.vocabulary},
            {"sequence", shape.sequence},
            {"dropout", shape.dropout},
            {"norm_epsilon", shape.norm_epsilon},
            {"rotary_base", shape.rotary_base}};
}

// Numbers are those that the program computes with: the fp32 nearest to 0.95, not 0.95.
Json as_json(const TrainPlan& plan) {
    const reference::Options options = options_of(plan);
    const reference::ParameterGroup& matrices = options.groups.at(0);
    return {{"stage", plan.stage},
            {"ranks", plan.ranks},
            {"precision", memory::name_of(weight_type(plan.precision))},
            {"steps", plan.steps},
            {"samples", plan.samples},
            {"micro_steps", plan.micro_steps},
            {"learning_rate", plan.learning_rate},
            {"warm_up_steps", plan.warm_up_steps},
            {"beta1", matrices.beta1},
            {"beta2", matrices.beta2},
            {"epsilon", matrices.epsilon},
            {"weight_decay_of_matrices", matrices.weight_decay},
            {"clip_norm", plan.clip_norm}};
}

}  // namespace

TensorLog::TensorLog(const TrainPlan& plan)
    : plan_(plan), keeps_masters_(plan.precision != reference::Precision::fp32) {
    if (plan.tensor_parallel > 1)
        throw scenarios::BadInput(
            "--tensors: needs --tensor-parallel 1: of a model that is cut no rank owns whole rows");
    if (!plan.resume_from.empty())
        throw scenarios::BadInput("--tensors: not with --resume: it begins with the first step");
    for (reference::TransformerUnit& unit :
         reference::transformer_units(shape_of(plan.model), reference::ShardPlace{}))
        for (reference::TransformerParameter& parameter : unit.parameters) {
            begins_.push_back(elements_);
            elements_ += parameter.rows * parameter.columns;
            parameters_.push_back(std::move(parameter));
        }
    const auto steps = static_cast<std::size_t>(plan.steps);
    const std::size_t of_step = elements_ * sizeof(float) * (keeps_masters_ ? 3 : 2);
    if (steps > kMostBytes / of_step)
        throw scenarios::BadInput(fmt::format(
            "--tensors: {} steps of {} bytes each are kept in memory, which is for {} at most: "
            "take fewer --steps or a smaller --model",
            steps, of_step, kMostBytes));
    const std::size_t tokens = steps * plan.tokens_of_step();
    tokens_.resize(tokens);
    targets_.resize(tokens);
    constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();
    start_.resize(elements_, kMissing);
    gradients_.resize(steps * elements_, kMissing);
    after_.resize(steps * elements_, kMissing);
    masters_.resize(keeps_masters_ ? steps * elements_ : 0, kMissing);
    loss_.resize(steps);
    norm_.resize(steps);
}

std::span<float> TensorLog::place(Values& values, std::size_t step,
                                  const reference::Slice& slice) const {
    return std::span(values).subspan(step * elements_ + begins_[slice.parameter] + slice.begin,
                                     slice.elements);
}

void TensorLog::start(reference::Stage& stage) {
    if (!speaks(stage)) return;
    for (const reference::Slice& slice : stage.owned())
        std::ranges::copy(stage.master(slice), place(start_, 0, slice).begin());
}

void TensorLog::batch(std::int64_t step, std::size_t first, std::span<const std::int32_t> tokens,
                      std::span<const std::int32_t> targets) {
    const std::size_t begin =
        static_cast<std::size_t>(step - 1) * plan_.tokens_of_step() + first * plan_.model.sequence;
    std::ranges::copy(tokens, std::span(tokens_).subspan(begin).begin());
    std::ranges::copy(targets, std::span(targets_).subspan(begin).begin());
}

void TensorLog::gradient(std::int64_t step, reference::Stage& stage) {
    if (!speaks(stage)) return;
    for (const reference::Slice& slice : stage.owned()) {
        const auto to = place(gradients_, static_cast<std::size_t>(step - 1), slice);
        reference::widen_into(to, stage.gradient(slice));
        for (float& value : to) value /= stage.gradient_divisor();
    }
}

void TensorLog::after(const StepResult& result, reference::Stage& stage) {
    const auto step = static_cast<std::size_t>(result.step - 1);
    if (stage.rank() == 0) {
        loss_[step] = result.loss;
        norm_[step] = result.norm;
    }
    if (!speaks(stage)) return;
    for (const reference::Slice& slice : stage.owned()) {
        reference::widen_into(place(after_, step, slice), stage.weight(slice));
        if (keeps_masters_)
            std::ranges::copy(stage.master(slice), place(masters_, step, slice).begin());
    }
}

std::string TensorLog::bytes() const {
    SafetensorsWriter writer;
    writer.note("model", as_json(shape_of(plan_.model)).dump());
    writer.note("training", as_json(plan_).dump());
    const auto steps = static_cast<std::size_t>(plan_.steps);
    const auto add = [&](const std::string& kind, const Values& values, std::size_t step) {
        for (std::size_t p = 0; p < parameters_.size(); ++p) {
            const Shape shape{parameters_[p].rows, parameters_[p].columns};
            writer.add(
                kind + "." + parameters_[p].name, shape,
                std::span(values).subspan(step * elements_ + begins_[p], shape[0] * shape[1]));
        }
    };
    add("weight", start_, 0);
    for (std::size_t step = 0; step < steps; ++step) {
        add(fmt::format("gradient.{}", step + 1), gradients_, step);
        add(fmt::format("after.{}", step + 1), after_, step);
        if (keeps_masters_) add(fmt::format("master.{}", step + 1), masters_, step);
    }
    const Shape batch{steps, plan_.samples_of_step(), plan_.model.sequence};
    writer.add("tokens", batch, std::span(tokens_));
    writer.add("targets", batch, std::span(targets_));
    writer.add("loss", {steps}, std::span(loss_));
    writer.add("norm", {steps}, std::span(norm_));
    return writer.bytes();
}

}  // namespace zeroproof::harness
