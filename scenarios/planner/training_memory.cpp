#include "scenarios/planner/training_memory.h"

#include <algorithm>

namespace zeroproof::scenarios {

using memory::Phase;
using Pass = PlannedTransformer::Pass;

namespace {

class PlannedTraining {
  public:
    memory::Ledger device;
    memory::Ledger host;

    explicit PlannedTraining(const TrainingPlan& plan)
        : plan_(plan),
          model_(planned_model(plan.model, plan.activations.tensor_parallel)),
          transformer_(plan.model, plan.activations, device, host),
          stage_(model_, plan.stage, device) {}

    const memory::Counts& counts() const { return stage_.counts(); }

    void forward() {
        device.enter(Phase::forward);
        transformer_.set_batch();
        const std::size_t units = model_.units.size();
        for (std::size_t unit = 0; unit < units; ++unit) {
            stage_.gather(unit);
            if (plan_.stage.prefetch && unit + 1 < units) stage_.prefetch(unit + 1);
            transformer_.forward(unit, Pass::train);
            stage_.release(unit);
        }
    }

    void backward() {
        device.enter(Phase::backward);
        const auto& segments = transformer_.recomputed();
        std::size_t left = segments.size();
        const auto ends_segment = [&](std::size_t unit) {
            return left > 0 && segments[left - 1].end == unit + 1;
        };
        stage_.begin_backward();
        for (std::size_t unit = model_.units.size(); unit-- > 0;) {
            if (ends_segment(unit))
                recompute(--left);
            else
                stage_.gather(unit);
            if (plan_.stage.prefetch && unit > 0)
                stage_.prefetch(ends_segment(unit - 1) ? segments[left - 1].begin : unit - 1);
            const std::vector<PlannedBytes> gradients = stage_.unit_gradients(unit);
            transformer_.backward(unit);
            stage_.release(unit);
            stage_.accept(unit);
        }
        stage_.end_backward();
    }

    void step() {
        device.enter(Phase::reduce);
        device.enter(Phase::step);
    }

  private:
    void recompute(std::size_t segment) {
        const auto [begin, end] = transformer_.recomputed()[segment];
        transformer_.restore(segment);
        for (std::size_t unit = begin; unit < end; ++unit) {
            stage_.gather(unit);
            if (plan_.stage.prefetch && unit + 1 < end) stage_.prefetch(unit + 1);
            transformer_.forward(unit, Pass::recompute);
            if (unit + 1 < end) stage_.release(unit);
        }
    }

    const TrainingPlan& plan_;
    PlannedModel model_;
    PlannedTransformer transformer_;
    PlannedStage stage_;
};

}  // namespace

std::size_t TrainingMemory::largest_peak_bytes() const {
    return *std::ranges::max_element(peak_bytes);
}

TrainingMemory plan_memory(const TrainingPlan& plan) {
    PlannedTraining training(plan);
    TrainingMemory result;
    result.counts = training.counts();
    result.at_rest = training.device.live_bytes_by_category();
    training.forward();
    result.after_forward = training.device.live_bytes_by_category();
    training.backward();
    training.step();
    for (std::size_t p = 0; p < memory::kPhases; ++p) {
        result.peak_bytes[p] = training.device.peak_bytes(static_cast<Phase>(p));
        for (std::size_t c = 0; c < memory::kCategories; ++c)
            result.peak_bytes_by_category[p][c] =
                training.device.peak_bytes(static_cast<Phase>(p), static_cast<memory::Category>(c));
    }
    result.host_peak_bytes = training.host.peak_bytes();
    return result;
}

}  // namespace zeroproof::scenarios
