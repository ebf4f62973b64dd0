#include "reference/stage.h"

#include <cmath>
#include <limits>

#include "reference/data_parallel/plain.h"
#include "reference/kernels.h"
#include "reference/optimizer/adam.h"
#include "reference/optimizer/gradient_norm.h"
#include "reference/zero_dp/stage1.h"
#include "reference/zero_dp/stage2.h"
#include "reference/zero_dp/stage3.h"

namespace zeroproof::reference {

Stage::Stage(const Setup& setup, std::span<const FlatParameters> flats, std::size_t owner)
    : setup_(setup),
      states_(flats, owner, setup.options.precision, setup.model, setup.space),
      loss_scale_(setup.options.precision, setup.options.loss_scale) {
    const collectives::Communicator* cut_over = setup.channels.tensor_parallel;
    const bool counts_copies = cut_over == nullptr || cut_over->rank() == 0;
    for (const Slice& slice : owned())
        if (counts_copies || setup.model.parameters()[slice.parameter].is_shard)
            counted_.push_back(slice);
}

GradientMeasure Stage::measure_gradients() {
    GradientMeasure measure;
    for (const Slice& slice : counted_) measure.add(gradient(slice), gradient_divisor());
    if (is_partitioned()) measure.reduce(setup_.channels.control);
    if (setup_.channels.tensor_parallel != nullptr)
        measure.reduce(*setup_.channels.tensor_parallel);
    return measure;
}

void Stage::clip_gradients(double bound) {
    complete_gradients();
    const GradientMeasure measure = measure_gradients();
    if (measure.non_finite > 0) return;
    const float factor = clip_coefficient(std::sqrt(measure.sum_of_squares), bound);
    for (const Slice& slice : owned()) scale(gradient(slice), factor);
}

void Stage::scale_gradient(std::size_t parameter, float factor) {
    complete_gradients();
    for (const Slice& slice : owned())
        if (slice.parameter == parameter) scale(gradient(slice), factor);
}

void Stage::scale_weight(std::size_t parameter, float factor) {
    const Parameter& which = setup_.model.parameters()[parameter];
    if (!which.trainable) {
        std::vector<float> values(which.elements);
        read_weights(parameter, values);
        for (float& value : values) value *= factor;
        write_frozen(parameter, values);
        return;
    }
    for (const Slice& slice : owned())
        if (slice.parameter == parameter)
            for (float& value : master(slice)) value *= factor;
    publish();
}

StepOutcome Stage::step() {
    complete_gradients();
    const GradientMeasure measure = measure_gradients();

    if (measure.non_finite > 0) {
        ++steps_skipped_;
        loss_scale_.step_skipped();
        return {.skipped = true, .norm = std::numeric_limits<double>::infinity()};
    }
    const double norm = std::sqrt(measure.sum_of_squares);
    const float clip = clip_coefficient(norm, setup_.options.clip_norm);

    ++steps_taken_;
    for (const Slice& slice : owned()) {
        const Parameter& parameter = setup_.model.parameters()[slice.parameter];
        const auto& group = setup_.options.groups[static_cast<std::size_t>(parameter.group)];
        adam_step(group, steps_taken_, {gradient_divisor(), clip}, gradient(slice), master(slice),
                  momentum(slice), variance(slice));
    }
    loss_scale_.step_taken();
    publish();
    return {.skipped = false, .norm = norm, .clip_coefficient = clip};
}

std::span<float> Stage::master(const Slice& slice) {
    if (states_.keeps_masters()) return states_.master(slice);
    return {reinterpret_cast<float*>(weight(slice).data), slice.elements};
}

float Stage::gradient_divisor() const {
    return loss_scale_.value() * static_cast<float>(setup_.options.micro_steps);
}

void Stage::publish() {
    if (states_.keeps_masters())
        for (const Slice& slice : owned()) cast_into(weight(slice), master(slice));
    publish_weights();
}

std::string Stage::first_text(std::string text) {
    for (collectives::Communicator* group :
         {&setup_.channels.control, setup_.channels.tensor_parallel}) {
        if (group == nullptr) continue;
        const int nobody = group->size();
        std::int32_t first = text.empty() ? nobody : group->rank();
        auto* bytes = reinterpret_cast<std::byte*>(&first);
        group->all_reduce(bytes, bytes, 1, DType::int32, collectives::Reduction::min).wait();
        if (first == nobody) continue;
        auto length = static_cast<std::int64_t>(text.size());
        group->broadcast(reinterpret_cast<std::byte*>(&length), 1, DType::int64, first).wait();
        text.resize(static_cast<std::size_t>(length));
        group->broadcast(reinterpret_cast<std::byte*>(text.data()), text.size(), DType::int8, first)
            .wait();
    }
    return text;
}

Progress Stage::progress() const {
    return {steps_taken_, steps_skipped_, loss_scale_.state()};
}

void Stage::restore(const Progress& progress) {
    steps_taken_ = progress.steps_taken;
    steps_skipped_ = progress.steps_skipped;
    loss_scale_.restore(progress.loss_scale);
}

std::unique_ptr<Stage> make_stage(const Setup& setup) {
    switch (setup.options.stage) {
        case 0: return std::make_unique<PlainDataParallel>(setup);
        case 1: return std::make_unique<Stage1>(setup);
        case 2: return std::make_unique<Stage2>(setup);
        case 3: return std::make_unique<Stage3>(setup);
        default: throw Unsupported("no such stage");
    }
}

}  // namespace zeroproof::reference
