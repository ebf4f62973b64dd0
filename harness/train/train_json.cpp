#include "harness/train/train_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "harness/train/train_json_read.h"
#include "harness/writers/json_lines.h"
#include "memory/formulas.h"

namespace zeroproof::harness {

namespace {

using Json = nlohmann::ordered_json;
using memory::Category;
using memory::Phase;

Json json_of(const memory::BytesByCategory& bytes) {
    Json json = Json::object();
    for (std::size_t c = 0; c < memory::kCategories; ++c)
        json[std::string(name_of(static_cast<Category>(c)))] = bytes[c];
    return json;
}

// Of phases that were entered.
template <typename Make>
Json by_phase(const std::array<std::size_t, memory::kPhases>& peaks, const Make& make) {
    Json json = Json::object();
    for (std::size_t p = 0; p < memory::kPhases; ++p)
        if (peaks[p] > 0) json[std::string(name_of(static_cast<Phase>(p)))] = make(p);
    return json;
}

// 0.1f is written as 0.1, and not with all digits of the double that equals it.
double shortest(float value) {
    return std::stod(fmt::format("{}", value));
}

Json json_of(const TrainPlan& plan) {
    Json model = {{"name", plan.model.name}};
    model.update(scenarios::sizes_of(plan.model));
    Json json = {{"model", std::move(model)},
                 {"stage", plan.stage},
                 {"ranks", plan.ranks},
                 {"tensor_parallel", plan.tensor_parallel},
                 {"precision", memory::name_of(weight_type(plan.precision))},
                 {"steps", plan.steps},
                 {"samples", plan.samples},
                 {"micro_steps", plan.micro_steps},
                 {"learning_rate", shortest(plan.learning_rate)},
                 {"weight_decay", shortest(plan.weight_decay)},
                 {"warm_up_steps", plan.warm_up_steps},
                 {"clip_norm", plan.clip_norm},
                 {"seed", plan.seed},
                 {"bucket_elements", plan.bucket_elements},
                 {"overlap", plan.overlap},
                 {"blocks_per_checkpoint", plan.blocks_per_checkpoint},
                 {"partition_checkpoints", plan.partition_checkpoints},
                 {"offload_checkpoints", plan.offload_checkpoints},
                 {"contiguous_checkpoints", plan.contiguous_checkpoints}};
    const bool limited = plan.capacity_bytes != memory::Space::kUnlimited;
    json["capacity_bytes"] = limited ? Json(plan.capacity_bytes) : Json(nullptr);
    return json;
}

Json json_of(const StepResult& step) {
    return {{"step", step.step},
            {"loss", step.loss},
            {"seconds", step.seconds},
            {"norm", step.norm},
            {"skipped", step.skipped}};
}

Json json_of(const RankMemory& memory, std::size_t rank) {
    return {{"rank", rank},
            {"at_rest_bytes", json_of(memory.at_rest)},
            {"after_first_step_bytes", json_of(memory.after_first)},
            {"after_forward_bytes", json_of(memory.after_forward)},
            {"peak_bytes", by_phase(memory.peak_bytes,
                                    [&](std::size_t p) -> Json { return memory.peak_bytes[p]; })},
            {"peak_bytes_by_category",
             by_phase(memory.peak_bytes,
                      [&](std::size_t p) { return json_of(memory.peak_bytes_by_category[p]); })},
            {"host_peak_bytes", memory.host_peak_bytes}};
}

Json json_of(const scenarios::TrainingMemory& memory) {
    return {{"trainable_elements", memory.counts.trainable},
            {"padded_elements", memory.counts.padded_trainable},
            {"at_rest_bytes", json_of(memory.at_rest)},
            {"after_forward_bytes", json_of(memory.after_forward)},
            {"peak_bytes", by_phase(memory.peak_bytes,
                                    [&](std::size_t p) -> Json { return memory.peak_bytes[p]; })},
            {"host_peak_bytes", memory.host_peak_bytes}};
}

// What the papers' formulas give for this rank, nominal: without padding.
Json formula_of(const TrainRecord& record) {
    const memory::StateBytes each = memory::state_bytes(weight_type(record.plan.precision));
    const auto phi = static_cast<double>(record.predicted.counts.trainable);
    Json json = Json::object();
    json["phi"] = record.predicted.counts.trainable;
    for (int stage = 0; stage <= 3; ++stage)
        json["stage_" + std::to_string(stage)] =
            nominal_model_state_bytes(stage, each, phi, record.plan.ranks);
    return json;
}

Json json_of(const TrafficRow& row) {
    return {{"traffic", name_of(row.traffic)},
            {"op", name_of(row.op)},
            {"phase", name_of(row.phase)},
            {"operations", row.operations},
            {"nominal_elements", row.nominal_elements}};
}

// Columns, so that a step of a thousand changes stays a few lines.
Json json_of(const std::vector<TimelinePoint>& timeline) {
    Json json = {{"seconds", Json::array()}, {"phase", Json::array()}};
    for (const TimelinePoint& point : timeline) {
        json["seconds"].push_back(point.seconds);
        json["phase"].push_back(name_of(point.phase));
    }
    for (std::size_t c = 0; c < memory::kCategories; ++c) {
        Json column = Json::array();
        for (const TimelinePoint& point : timeline) column.push_back(point.live_bytes[c]);
        json[std::string(name_of(static_cast<Category>(c)))] = std::move(column);
    }
    return json;
}

}  // namespace

std::string train_json(const TrainRecord& record) {
    Json root = {{"format", kTrainFormat},
                 {"version", kTrainVersion},
                 {"zeroproof_version", record.zeroproof_version},
                 {"command", record.command},
                 {"started", record.started},
                 {"complete", record.complete},
                 {"ended_by", record.complete ? Json(nullptr) : Json(record.ended_by)},
                 {"data", record.data},
                 {"plan", json_of(record.plan)},
                 {"parameters", record.parameters},
                 {"resumed_at", record.resumed_at},
                 {"tokens_per_second",
                  record.steps.empty() ? Json(nullptr) : Json(record.tokens_per_second())},
                 {"resident_before_bytes", record.resident_before_bytes},
                 {"resident_peak_bytes", record.resident_peak_bytes},
                 {"formula_bytes", formula_of(record)},
                 {"predicted", json_of(record.predicted)}};
    root["by_rank"] = Json::array();
    for (std::size_t rank = 0; rank < record.by_rank.size(); ++rank)
        root["by_rank"].push_back(json_of(record.by_rank[rank], rank));
    root["traffic"] = Json::array();
    for (const TrafficRow& row : record.traffic) root["traffic"].push_back(json_of(row));
    root["steps"] = Json::array();
    for (const StepResult& step : record.steps) root["steps"].push_back(json_of(step));
    root["timeline"] = record.by_rank.empty() ? json_of(std::vector<TimelinePoint>())
                                              : json_of(record.by_rank.front().timeline);
    return json_by_lines(root);
}

std::string chrome_trace(const TrainRecord& record) {
    constexpr double kMicroseconds = 1e6;
    Json events = Json::array();
    for (std::size_t rank = 0; rank < record.by_rank.size(); ++rank) {
        const std::vector<TimelinePoint>& timeline = record.by_rank[rank].timeline;
        events.push_back({{"name", "process_name"},
                          {"ph", "M"},
                          {"pid", rank},
                          {"args", {{"name", "rank " + std::to_string(rank)}}}});
        std::size_t first = 0;  // of the phase
        for (std::size_t i = 0; i < timeline.size(); ++i) {
            const TimelinePoint& point = timeline[i];
            events.push_back({{"name", "live bytes"},
                              {"ph", "C"},
                              {"pid", rank},
                              {"ts", point.seconds * kMicroseconds},
                              {"args", json_of(point.live_bytes)}});
            const bool ends = i + 1 == timeline.size() || timeline[i + 1].phase != point.phase;
            if (!ends) continue;
            const double end = i + 1 == timeline.size() ? point.seconds : timeline[i + 1].seconds;
            events.push_back({{"name", name_of(point.phase)},
                              {"ph", "X"},
                              {"pid", rank},
                              {"tid", 0},
                              {"ts", timeline[first].seconds * kMicroseconds},
                              {"dur", (end - timeline[first].seconds) * kMicroseconds}});
            first = i + 1;
        }
    }
    return json_by_lines({{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}});
}

}  // namespace zeroproof::harness
