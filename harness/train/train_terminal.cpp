#include "harness/train/train_terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "memory/formulas.h"

namespace zeroproof::harness {

namespace {

constexpr double kPeakTolerance = 0.02;

std::size_t total(const memory::BytesByCategory& bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), std::size_t{0});
}

std::size_t peak_of(const RankMemory& memory) {
    return *std::ranges::max_element(memory.peak_bytes);
}

std::string formula_text(int stage, int ranks) {
    switch (stage) {
        case 1: return fmt::format("4 phi + 12 phi / {}", ranks);
        case 2: return fmt::format("2 phi + 14 phi / {}", ranks);
        case 3: return fmt::format("16 phi / {}", ranks);
        default: return "16 phi";
    }
}

// fp32 has no master beside the weight: its K is 8, and weight and gradient are 4 bytes each.
std::string formula_text(const TrainPlan& plan) {
    if (plan.precision != reference::Precision::fp32) return formula_text(plan.stage, plan.ranks);
    switch (plan.stage) {
        case 1: return fmt::format("8 phi + 8 phi / {}", plan.ranks);
        case 2: return fmt::format("4 phi + 12 phi / {}", plan.ranks);
        default: return formula_text(plan.stage, plan.ranks);
    }
}

}  // namespace

std::string known_models() {
    std::string text;
    for (const scenarios::ModelFile& file : scenarios::model_files()) {
        const auto model = scenarios::read_transformer_model(file.text, std::string(file.name));
        std::size_t elements = 0;
        for (const auto& parameter : scenarios::planned_model(model, 1).parameters)
            elements += parameter.elements;
        text += fmt::format("{:<12} {:>8.4g} M parameters, {} layers of {}, sequences of {}. {}\n",
                            model.name, static_cast<double>(elements) / 1e6, model.layers,
                            model.hidden, model.sequence, model.purpose);
    }
    return text;
}

std::string training_header(const TrainPlan& plan, const TextData& data) {
    return fmt::format(
        "{} in {}, stage {} on {} ranks{}: {} steps of {} sequences of {} bytes, from a text of {} "
        "bytes\n",
        plan.model.name, memory::name_of(weight_type(plan.precision)), plan.stage, plan.ranks,
        plan.tensor_parallel > 1
            ? fmt::format(", each cut over {} tensor-parallel ranks", plan.tensor_parallel)
            : "",
        plan.steps, plan.samples_of_step(), plan.model.sequence, data.bytes());
}

void TrainingProgress::step(const StepResult& step) {
    seconds_ += step.seconds;
    ++steps_;
    const double tokens =
        static_cast<double>(plan_.tokens_of_step() * static_cast<std::uint64_t>(steps_));
    const std::string line = fmt::format(
        "step {:>6} of {}  loss {:.4f}  norm {:.3g}  {:.0f} tokens/s{}", step.step, plan_.steps,
        step.loss, step.norm, tokens / seconds_, step.skipped ? "  skipped" : "");
    // About ten lines stay.
    const std::int64_t every = std::max<std::int64_t>(1, plan_.steps / 10);
    const bool stays = steps_ == 1 || step.step % every == 0 || step.step == plan_.steps;
    if (shows_) fmt::print(stderr, "\r\033[K");
    if (stays) fmt::print("{}\n", line);
    if (shows_ && !stays) fmt::print(stderr, "{}", line);
    std::fflush(stdout);
}

void TrainingProgress::end() const {
    if (shows_) fmt::print(stderr, "\r\033[K");
}

bool is_as_predicted(const TrainRecord& record) {
    const auto predicted = static_cast<double>(record.predicted.largest_peak_bytes());
    return std::ranges::all_of(record.by_rank, [&](const RankMemory& memory) {
        return memory.at_rest == record.predicted.at_rest && memory.at_rest == memory.after_first &&
               std::abs(static_cast<double>(peak_of(memory)) - predicted) <=
                   kPeakTolerance * predicted;
    });
}

std::string training_summary(const TrainRecord& record) {
    const TrainPlan& plan = record.plan;
    if (record.steps.empty())
        return fmt::format(
            "the checkpoint is of step {}: with --steps {} nothing is left to do. Give a higher "
            "number to go on\n",
            record.resumed_at, plan.steps);
    const RankMemory& first = record.by_rank.front();
    std::string text =
        fmt::format("loss {:.4f} -> {:.4f}, {:.0f} tokens/s (median)\n", record.steps.front().loss,
                    record.steps.back().loss, record.tokens_per_second());
    const auto phi = static_cast<double>(record.predicted.counts.trainable);
    text += fmt::format(
        "bytes of a rank  at rest {}, predicted {}, formula {} = {:.0f} (phi = {:.0f})\n",
        total(first.at_rest), total(record.predicted.at_rest), formula_text(plan),
        nominal_model_state_bytes(plan.stage, memory::state_bytes(weight_type(plan.precision)), phi,
                                  plan.ranks),
        phi);
    const std::size_t peak = peak_of(first);
    const std::size_t predicted = record.predicted.largest_peak_bytes();
    text += fmt::format("                 peak {}, predicted {} ({:+.2f} %)\n", peak, predicted,
                        100 * (static_cast<double>(peak) / static_cast<double>(predicted) - 1));
    for (const memory::Phase phase : {memory::Phase::forward, memory::Phase::backward,
                                      memory::Phase::reduce, memory::Phase::step}) {
        const auto p = static_cast<std::size_t>(phase);
        text += fmt::format("  {:<10} peak {:>12}", name_of(phase), first.peak_bytes[p]);
        for (std::size_t c = 0; c < memory::kCategories; ++c)
            if (first.peak_bytes_by_category[p][c] > 0)
                text += fmt::format("  {} {}", name_of(static_cast<memory::Category>(c)),
                                    first.peak_bytes_by_category[p][c]);
        text += "\n";
    }
    if (first.host_peak_bytes > 0)
        text += fmt::format("  host       peak {:>12}\n", first.host_peak_bytes);
    for (const TrafficRow& row : record.traffic)
        if (row.traffic != collectives::Traffic::control)
            text += fmt::format("  {:<10} {} of {}: {} elements in {} operations\n",
                                name_of(row.phase), name_of(row.op), name_of(row.traffic),
                                row.nominal_elements, row.operations);
    if (!is_as_predicted(record)) text += "the bytes are not what was predicted\n";
    return text;
}

std::string what_would_fit(const TrainPlan& plan) {
    const auto peak = [](const TrainPlan& p) {
        return scenarios::plan_memory(p.memory_plan()).largest_peak_bytes();
    };
    std::string text = fmt::format("This run takes {} bytes on each rank, of {} that there are.\n",
                                   peak(plan), plan.capacity_bytes);
    std::string fits;
    const auto try_plan = [&](const TrainPlan& other, const std::string& change) {
        if (peak(other) <= plan.capacity_bytes)
            fits += fmt::format("  {} takes {} bytes\n", change, peak(other));
    };
    for (int stage = plan.stage + 1; stage <= 3; ++stage) {
        TrainPlan other = plan;
        other.stage = stage;
        try_plan(other, fmt::format("--stage {}", stage));
    }
    if (plan.blocks_per_checkpoint == 0) {
        TrainPlan other = plan;
        other.blocks_per_checkpoint = 1;
        try_plan(other, "--recompute 1");
        other.stage = 3;
        if (plan.stage < 3) try_plan(other, "--stage 3 --recompute 1");
    }
    if (plan.samples > 1) {
        TrainPlan other = plan;
        other.samples = 1;
        try_plan(other, "--batch 1");
    }
    if (fits.empty())
        return text + "Nothing near it fits: take a smaller model, more ranks or more memory.\n";
    return text + "These would fit:\n" + fits;
}

}  // namespace zeroproof::harness
