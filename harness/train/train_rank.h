// One rank of `zeroproof train`.
#pragma once

#include <functional>
#include <memory>

#include "collectives/metered.h"
#include "harness/subjects/allocation_recorder.h"
#include "harness/train/text_data.h"
#include "harness/train/timeline.h"
#include "harness/train/train_record.h"
#include "reference/checkpoint/checkpoint_series.h"
#include "reference/models/transformer.h"
#include "reference/trainer.h"

namespace zeroproof::harness {

class TensorLog;

// What a plan asks the reference for.
reference::TransformerShape shape_of(const scenarios::TransformerModel& model);
reference::Options options_of(const TrainPlan& plan);

// Trains by the loop of the reference, and writes down what its ledger and its communicators see.
class TrainRank {
  public:
    using Report = std::function<void(const StepResult&)>;

    TrainRank(const TrainPlan& plan, const TextData& data, collectives::Communicator& world);

    // Fills it in, if it is not null, while it runs.
    void log_to(TensorLog* tensors) { tensors_ = tensors; }
    // `report` is told of each step, by the first rank alone. Returns after the last.
    void run(const Report& report);
    RankMemory take_memory();
    std::vector<TrafficRow> last_step_traffic() const;
    std::int64_t resumed_at() const { return resumed_at_; }
    // The weights as the ranks see them, by parameter. Collective.
    std::vector<std::vector<float>> weights();

  private:
    using Group = std::unique_ptr<collectives::Communicator>;

    Group channel(collectives::Traffic traffic, bool tensor_parallel);
    StepResult step(std::int64_t number);
    void micro_step(std::int64_t step, int number);
    double mean_over_ranks(double value);
    void resume();
    void save();
    void enter(memory::Phase phase) { device_.ledger().enter(phase); }

    const TrainPlan& plan_;
    const TextData& data_;
    collectives::Communicator& world_;
    memory::Space device_;
    memory::Space host_;
    Timeline timeline_;
    AllocationRecorder allocations_;
    collectives::Meter meter_;
    Group data_parallel_;
    Group tensor_parallel_;
    Group gradients_, parameters_, control_, activations_, checkpoints_, norm_, reports_;
    std::unique_ptr<reference::LanguageModel> model_;
    std::unique_ptr<reference::Trainer> trainer_;
    std::int64_t resumed_at_ = 0;
    std::size_t step_begin_ = 0;  // of the last step, in the meter's records
    RankMemory memory_;
    TensorLog* tensors_ = nullptr;
};

}  // namespace zeroproof::harness
