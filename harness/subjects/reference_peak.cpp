#include "harness/subjects/reference_peak.h"

#include "scenarios/planner/training_memory.h"
#include "suites/conformance/transformer_plan.h"

namespace zeroproof::harness {

namespace {

using memory::Phase;
using scenarios::PlannedBytes;
using scenarios::PlannedStage;

scenarios::PlannedModel planned(const suites::Case& c) {
    scenarios::PlannedModel model;
    for (const suites::ParameterCase& p : c.parameters)
        model.parameters.push_back({p.elements(), p.trainable});
    for (const suites::UnitCase& unit : c.units) model.units.push_back(unit.parameters);
    return model;
}

// A step of a model without activations.
std::size_t peak_of_given_gradients(const suites::Case& c, Phase phase) {
    const scenarios::PlannedModel model = planned(c);
    memory::Ledger ledger;
    PlannedStage stage(model,
                       {.stage = c.stage,
                        .ranks = static_cast<std::size_t>(c.ranks),
                        .type = weight_type(c.precision),
                        .bucket_elements = c.bucket_elements,
                        .overlap = c.overlap,
                        .prefetch = c.prefetch},
                       ledger);
    const std::size_t units = model.units.size();
    ledger.enter(Phase::forward);
    for (std::size_t unit = 0; unit < units; ++unit) {
        stage.gather(unit);
        if (c.prefetch && unit + 1 < units) stage.prefetch(unit + 1);
        stage.release(unit);
    }
    ledger.enter(Phase::backward);
    stage.begin_backward();
    for (std::size_t unit = units; unit-- > 0;) {
        stage.gather(unit);
        if (c.prefetch && unit > 0) stage.prefetch(unit - 1);
        const std::vector<PlannedBytes> gradients = stage.unit_gradients(unit);
        stage.release(unit);
        stage.accept(unit);
    }
    stage.end_backward();
    ledger.enter(Phase::step);
    return ledger.peak_bytes(phase);
}

}  // namespace

std::size_t reference_peak_bytes(const suites::Case& c, Phase phase) {
    if (!c.transformer) return peak_of_given_gradients(c, phase);
    return scenarios::plan_memory(suites::training_plan(c))
        .peak_bytes[static_cast<std::size_t>(phase)];
}

std::optional<memory::BytesByCategory> reference_peak_bytes_by_category(const suites::Case& c,
                                                                        Phase phase) {
    if (!c.transformer) return std::nullopt;
    return scenarios::plan_memory(suites::training_plan(c))
        .peak_bytes_by_category[static_cast<std::size_t>(phase)];
}

}  // namespace zeroproof::harness
