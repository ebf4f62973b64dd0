#include "harness/train/train_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>

#include "harness/subjects/transformer_shape.h"
#include "harness/train/tensor_log.h"
#include "harness/train/train_checkpoint.h"

namespace zeroproof::harness {

namespace {

using collectives::Traffic;
using memory::Phase;

}  // namespace

// Group 0 is of matrices, which decay, group 1 of the rest.
reference::Options options_of(const TrainPlan& plan) {
    reference::ParameterGroup matrices{
        .learning_rate = plan.learning_rate, .beta2 = 0.95f, .weight_decay = plan.weight_decay};
    reference::ParameterGroup rest = matrices;
    rest.weight_decay = 0;
    reference::Options options;
    options.stage = plan.stage;
    options.precision = plan.precision;
    options.micro_steps = plan.micro_steps;
    options.groups = {matrices, rest};
    options.bucket_elements = plan.bucket_elements;
    options.overlap = plan.overlap;
    options.prefetch = plan.prefetch;
    options.clip_norm = plan.clip_norm;
    return options;
}

TrainRank::TrainRank(const TrainPlan& plan, const TextData& data, collectives::Communicator& world)
    : plan_(plan),
      data_(data),
      world_(world),
      device_(fmt::format("the device of rank {}", world.rank()), plan.capacity_bytes,
              memory::Returned::unpoisoned),
      host_(fmt::format("the host memory of rank {}", world.rank())),
      allocations_(device_.ledger()),
      meter_(device_.ledger()) {
    if (plan.records_allocations) device_.observe(&allocations_);
    // The ranks of a tensor-parallel group are neighbours.
    const int group = world.rank() / plan.tensor_parallel;
    const int place = world.rank() % plan.tensor_parallel;
    data_parallel_ = world.split(place, group);
    tensor_parallel_ = world.split(group, place);
    gradients_ = channel(Traffic::gradient, false);
    parameters_ = channel(Traffic::parameter, false);
    control_ = channel(Traffic::control, false);
    activations_ = channel(Traffic::activation, true);
    checkpoints_ = channel(Traffic::checkpoint, true);
    norm_ = channel(Traffic::control, true);
    reports_ = world.split(0, world.rank());

    const bool cut = plan.tensor_parallel > 1;
    const reference::Options options = options_of(plan);
    reference::TransformerOptions model_options{
        .samples = plan.samples,
        .seed = plan.seed,
        .blocks_per_checkpoint = plan.blocks_per_checkpoint,
        .checkpoints = {.partition_over = plan.partition_checkpoints ? checkpoints_.get() : nullptr,
                        .host = plan.offload_checkpoints ? &host_ : nullptr,
                        .contiguous = plan.contiguous_checkpoints},
        .tensor_parallel = cut ? activations_.get() : nullptr};
    model_ =
        make_transformer(weight_type(plan.precision), shape_of(plan.model), model_options, device_);
    trainer_ = std::make_unique<reference::Trainer>(
        *model_, options,
        reference::Channels{*gradients_, *parameters_, *control_, cut ? norm_.get() : nullptr},
        device_);
}

TrainRank::Group TrainRank::channel(Traffic traffic, bool tensor_parallel) {
    collectives::Communicator& over = tensor_parallel ? *tensor_parallel_ : *data_parallel_;
    return std::make_unique<collectives::MeteredCommunicator>(over.split(0, over.rank()), traffic,
                                                              meter_);
}

void TrainRank::run(const Report& report) {
    if (!plan_.resume_from.empty()) resume();
    if (!plan_.checkpoint_folder.empty())
        reference::CheckpointSeries(plan_.checkpoint_folder).require_none_after(resumed_at_);
    if (tensors_ != nullptr) tensors_->start(trainer_->stage());
    timeline_.start();
    for (std::int64_t number = resumed_at_ + 1; number <= plan_.steps; ++number) {
        const std::int64_t of_this_run = number - resumed_at_ - 1;
        const bool shown = of_this_run >= plan_.timeline_begin && of_this_run < plan_.timeline_end;
        if (shown) device_.ledger().observe(&timeline_);
        const StepResult result = step(number);
        if (shown) {
            timeline_.changed(device_.ledger());  // nothing changes while Adam runs
            device_.ledger().observe(nullptr);
        }
        if (tensors_ != nullptr) tensors_->after(result, trainer_->stage());
        memory_.at_rest = device_.ledger().live_bytes_by_category();
        if (of_this_run == 0) memory_.after_first = memory_.at_rest;
        if (world_.rank() == 0) report(result);
        const bool due = plan_.checkpoint_every > 0 && number % plan_.checkpoint_every == 0;
        if (!plan_.checkpoint_folder.empty() && (due || number == plan_.steps)) save();
    }
}

StepResult TrainRank::step(std::int64_t number) {
    const auto begin = std::chrono::steady_clock::now();
    step_begin_ = meter_.records().size();
    const float rate = plan_.learning_rate *
                       static_cast<float>(std::min(number, plan_.warm_up_steps)) /
                       static_cast<float>(std::max<std::int64_t>(1, plan_.warm_up_steps));
    for (const std::size_t group : {0u, 1u})
        trainer_->set_learning_rate(group, plan_.warm_up_steps > 0 ? rate : plan_.learning_rate);
    double loss = 0;
    for (int micro = 0; micro < plan_.micro_steps; ++micro) {
        micro_step(number, micro);
        loss += model_->loss() / plan_.micro_steps;
    }
    enter(Phase::reduce);
    trainer_->stage().wait_for_gradients();
    if (tensors_ != nullptr) tensors_->gradient(number, trainer_->stage());
    enter(Phase::step);
    const reference::StepOutcome outcome = trainer_->step();
    loss = mean_over_ranks(loss);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    return {number, loss, took.count(), outcome.norm, outcome.skipped};
}

void TrainRank::micro_step(std::int64_t step, int number) {
    const std::size_t tokens_of_sample = plan_.model.sequence;
    const auto rank = static_cast<std::uint64_t>(data_parallel_->rank());
    const std::uint64_t first = static_cast<std::uint64_t>(step - 1) * plan_.samples_of_step() +
                                (rank * static_cast<std::uint64_t>(plan_.micro_steps) +
                                 static_cast<std::uint64_t>(number)) *
                                    plan_.samples;
    std::vector<std::int32_t> tokens(plan_.samples * tokens_of_sample);
    std::vector<std::int32_t> targets(tokens.size());
    for (std::size_t i = 0; i < plan_.samples; ++i)
        data_.sample(plan_.seed, first + i,
                     std::span(tokens).subspan(i * tokens_of_sample, tokens_of_sample),
                     std::span(targets).subspan(i * tokens_of_sample, tokens_of_sample));
    if (tensors_ != nullptr)
        tensors_->batch(step, first % plan_.samples_of_step(), tokens, targets);
    enter(Phase::forward);
    model_->set_batch(tokens, targets, first);
    trainer_->forward();
    memory_.after_forward = device_.ledger().live_bytes_by_category();
    enter(Phase::backward);
    trainer_->backward();
}

double TrainRank::mean_over_ranks(double value) {
    auto* data = reinterpret_cast<std::byte*>(&value);
    reports_->all_reduce(data, data, 1, memory::DType::fp64, collectives::Reduction::mean).wait();
    return value;
}

RankMemory TrainRank::take_memory() {
    const memory::Ledger& ledger = device_.ledger();
    for (std::size_t p = 0; p < memory::kPhases; ++p) {
        const auto phase = static_cast<Phase>(p);
        memory_.peak_bytes[p] = ledger.peak_bytes(phase);
        for (std::size_t c = 0; c < memory::kCategories; ++c)
            memory_.peak_bytes_by_category[p][c] =
                ledger.peak_bytes(phase, static_cast<memory::Category>(c));
    }
    memory_.host_peak_bytes = host_.ledger().peak_bytes();
    memory_.timeline = timeline_.take();
    memory_.allocations = allocations_.take();
    return std::move(memory_);
}

std::vector<TrafficRow> TrainRank::last_step_traffic() const {
    std::map<std::tuple<Traffic, Phase, collectives::Op>, TrafficRow> rows;
    for (std::size_t i = step_begin_; i < meter_.records().size(); ++i) {
        const collectives::CollectiveRecord& record = meter_.records()[i];
        if (record.phase == Phase::save || record.group.size() == 1) continue;
        TrafficRow& row = rows[{record.traffic, record.phase, record.op}];
        row.traffic = record.traffic;
        row.op = record.op;
        row.phase = record.phase;
        ++row.operations;
        row.nominal_elements += nominal_elements(record);
    }
    std::vector<TrafficRow> all;
    for (const auto& [key, row] : rows) all.push_back(row);
    return all;
}

std::vector<std::vector<float>> TrainRank::weights() {
    enter(Phase::read);
    std::vector<std::vector<float>> all;
    for (std::size_t p = 0; p < model_->parameters().size(); ++p)
        trainer_->stage().read_weights(p, all.emplace_back(model_->parameters()[p].elements));
    return all;
}

void TrainRank::resume() {
    enter(Phase::load);
    trainer_->load(checkpoint_to_resume(plan_));
    const reference::Progress progress = trainer_->stage().progress();
    resumed_at_ = progress.steps_taken + progress.steps_skipped;
}

void TrainRank::save() {
    enter(Phase::save);
    reference::CheckpointSeries(plan_.checkpoint_folder)
        .save(trainer_->stage(), *model_, run_description(plan_));
}

}  // namespace zeroproof::harness
