#include "harness/train/train_json_read.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "collectives/communicator.h"

namespace zeroproof::harness {

namespace {

using memory::BytesByCategory;
using memory::Category;
using memory::Phase;
using scenarios::Json;
using scenarios::JsonReader;

// Every reader of JSON holds integers up to here exactly.
constexpr std::int64_t kMost = std::int64_t{1} << 53;
constexpr std::int64_t kMostRanks = 4096;
constexpr std::int64_t kMostSize = 1 << 24;
constexpr std::size_t kLongestName = 100;
constexpr std::size_t kOps = 8;

std::string read_name(const JsonReader& json) {
    std::string name = json.text();
    if (name.empty() || name.size() > kLongestName)
        json.fail(fmt::format("expected 1 to {} bytes", kLongestName));
    return name;
}

std::size_t read_count(const JsonReader& json, std::int64_t lowest = 0,
                       std::int64_t highest = kMost) {
    return static_cast<std::size_t>(json.integer(lowest, highest));
}

double read_not_negative(const JsonReader& json) {
    const double value = json.number();
    if (value < 0) json.fail("expected 0 or more");
    return value;
}

// JSON has no number for what overflowed.
double read_finite_or_null(const JsonReader& json) {
    return json.json().is_null() ? std::numeric_limits<double>::quiet_NaN() : json.number();
}

BytesByCategory read_by_category(const JsonReader& json) {
    BytesByCategory bytes{};
    for (std::size_t c = 0; c < memory::kCategories; ++c)
        bytes[c] = read_count(json.at(name_of(static_cast<Category>(c))));
    if (json.json().size() != memory::kCategories) json.fail("has keys that are no category");
    return bytes;
}

// Calls `read` with the number of each phase that stands there, and its value.
template <typename Read>
void read_by_phase(const JsonReader& json, const Read& read) {
    std::size_t known = 0;
    for (std::size_t p = 0; p < memory::kPhases; ++p) {
        const auto name = name_of(static_cast<Phase>(p));
        if (!json.has(name)) continue;
        read(p, json.at(name));
        ++known;
    }
    if (!json.json().is_object() || json.json().size() != known)
        json.fail("expected an object whose keys are phases");
}

std::array<std::size_t, memory::kPhases> read_peaks(const JsonReader& json) {
    std::array<std::size_t, memory::kPhases> peaks{};
    read_by_phase(json,
                  [&](std::size_t p, const JsonReader& peak) { peaks[p] = read_count(peak, 1); });
    return peaks;
}

scenarios::TransformerModel read_model(const JsonReader& json) {
    json.allow({"name", "family", "layers", "hidden", "heads", "kv_heads", "feed_forward",
                "vocabulary", "sequence", "dropout"});
    const auto size = [&](std::string_view key) { return read_count(json.at(key), 1, kMostSize); };
    scenarios::TransformerModel model;
    model.name = read_name(json.at("name"));
    model.family = scenarios::read_named<scenarios::TransformerFamily>(
        json.at("family"), scenarios::kTransformerFamilies);
    model.layers = size("layers");
    model.hidden = size("hidden");
    model.heads = size("heads");
    model.kv_heads = size("kv_heads");
    model.feed_forward = size("feed_forward");
    model.vocabulary = size("vocabulary");
    model.sequence = size("sequence");
    model.dropout = read_not_negative(json.at("dropout"));
    return model;
}

reference::Precision read_precision(const JsonReader& json) {
    using reference::Precision;
    constexpr Precision kPrecisions[] = {Precision::fp32, Precision::bf16, Precision::fp16};
    return kPrecisions[json.choice({"fp32", "bf16", "fp16"})];
}

TrainPlan read_plan(const JsonReader& json) {
    json.allow({"model",
                "stage",
                "ranks",
                "tensor_parallel",
                "precision",
                "steps",
                "samples",
                "micro_steps",
                "learning_rate",
                "weight_decay",
                "warm_up_steps",
                "clip_norm",
                "seed",
                "bucket_elements",
                "overlap",
                "blocks_per_checkpoint",
                "partition_checkpoints",
                "offload_checkpoints",
                "contiguous_checkpoints",
                "capacity_bytes"});
    TrainPlan plan;
    plan.model = read_model(json.at("model"));
    plan.stage = static_cast<int>(json.at("stage").integer(0, 3));
    plan.ranks = static_cast<int>(json.at("ranks").integer(1, kMostRanks));
    plan.tensor_parallel = static_cast<int>(json.at("tensor_parallel").integer(1, kMostRanks));
    plan.precision = read_precision(json.at("precision"));
    plan.steps = json.at("steps").integer(1, kMost);
    plan.samples = read_count(json.at("samples"), 1, kMostSize);
    plan.micro_steps = static_cast<int>(json.at("micro_steps").integer(1, kMostSize));
    plan.learning_rate = static_cast<float>(read_not_negative(json.at("learning_rate")));
    plan.weight_decay = static_cast<float>(read_not_negative(json.at("weight_decay")));
    plan.warm_up_steps = json.at("warm_up_steps").integer(0, kMost);
    plan.clip_norm = read_not_negative(json.at("clip_norm"));
    const JsonReader seed = json.at("seed");  // any of 64 bits
    if (!seed.json().is_number_unsigned()) seed.fail("expected an integer, 0 or more");
    plan.seed = seed.json().get<std::uint64_t>();
    plan.bucket_elements = read_count(json.at("bucket_elements"), 1);
    plan.overlap = json.at("overlap").boolean();
    plan.blocks_per_checkpoint = read_count(json.at("blocks_per_checkpoint"));
    plan.partition_checkpoints = json.at("partition_checkpoints").boolean();
    plan.offload_checkpoints = json.at("offload_checkpoints").boolean();
    plan.contiguous_checkpoints = json.at("contiguous_checkpoints").boolean();
    const JsonReader capacity = json.at("capacity_bytes");
    if (!capacity.json().is_null()) plan.capacity_bytes = read_count(capacity, 1);
    return plan;
}

scenarios::TrainingMemory read_predicted(const JsonReader& json) {
    json.allow({"trainable_elements", "padded_elements", "at_rest_bytes", "after_forward_bytes",
                "peak_bytes", "host_peak_bytes"});
    scenarios::TrainingMemory memory;
    memory.counts.trainable = read_count(json.at("trainable_elements"), 1);
    memory.counts.padded_trainable = read_count(json.at("padded_elements"), 1);
    memory.at_rest = read_by_category(json.at("at_rest_bytes"));
    memory.after_forward = read_by_category(json.at("after_forward_bytes"));
    memory.peak_bytes = read_peaks(json.at("peak_bytes"));
    if (memory.largest_peak_bytes() == 0) json.at("peak_bytes").fail("has no phase");
    memory.host_peak_bytes = read_count(json.at("host_peak_bytes"));
    return memory;
}

RankMemory read_rank(const JsonReader& json, std::int64_t rank) {
    json.allow({"rank", "at_rest_bytes", "after_first_step_bytes", "after_forward_bytes",
                "peak_bytes", "peak_bytes_by_category", "host_peak_bytes"});
    (void)json.at("rank").integer(rank, rank);
    RankMemory memory;
    memory.at_rest = read_by_category(json.at("at_rest_bytes"));
    memory.after_first = read_by_category(json.at("after_first_step_bytes"));
    memory.after_forward = read_by_category(json.at("after_forward_bytes"));
    memory.peak_bytes = read_peaks(json.at("peak_bytes"));
    const JsonReader categories = json.at("peak_bytes_by_category");
    std::size_t phases = 0;
    read_by_phase(categories, [&](std::size_t p, const JsonReader& bytes) {
        memory.peak_bytes_by_category[p] = read_by_category(bytes);
        phases += memory.peak_bytes[p] > 0 ? 1 : 0;
    });
    if (categories.json().size() != phases || phases != json.at("peak_bytes").json().size())
        categories.fail("does not have the phases of /peak_bytes");
    memory.host_peak_bytes = read_count(json.at("host_peak_bytes"));
    return memory;
}

std::vector<RankMemory> read_ranks(const JsonReader& json, int world_ranks) {
    std::vector<RankMemory> ranks;
    for (const JsonReader& item : json.items())
        ranks.push_back(read_rank(item, static_cast<std::int64_t>(ranks.size())));
    if (!ranks.empty() && std::cmp_not_equal(ranks.size(), world_ranks))
        json.fail(fmt::format("{} entries, of {} ranks", ranks.size(), world_ranks));
    return ranks;
}

std::vector<TrafficRow> read_traffic(const JsonReader& json) {
    std::vector<TrafficRow> rows;
    std::set<std::tuple<collectives::Traffic, collectives::Op, Phase>> known;
    for (const JsonReader& item : json.items()) {
        item.allow({"traffic", "op", "phase", "operations", "nominal_elements"});
        TrafficRow row;
        row.traffic =
            scenarios::read_named<collectives::Traffic>(item.at("traffic"), collectives::kTraffics);
        row.op = scenarios::read_named<collectives::Op>(item.at("op"), kOps);
        row.phase = scenarios::read_named<Phase>(item.at("phase"), memory::kPhases);
        row.operations = read_count(item.at("operations"), 1);
        row.nominal_elements = read_count(item.at("nominal_elements"));
        if (!known.insert({row.traffic, row.op, row.phase}).second)
            item.fail("stands twice: the same traffic, op and phase");
        rows.push_back(row);
    }
    return rows;
}

std::vector<StepResult> read_steps(const JsonReader& json, std::int64_t resumed_at,
                                   std::int64_t most) {
    std::vector<StepResult> steps;
    std::int64_t number = resumed_at;
    for (const JsonReader& item : json.items()) {
        item.allow({"step", "loss", "seconds", "norm", "skipped"});
        StepResult step;
        step.step = item.at("step").integer(1, most);
        if (step.step != ++number)
            item.at("step").fail(fmt::format("expected {}, the one after the last", number));
        step.loss = read_finite_or_null(item.at("loss"));
        step.seconds = item.at("seconds").number();
        if (!(step.seconds > 0)) item.at("seconds").fail("expected more than 0");
        step.norm = read_finite_or_null(item.at("norm"));
        step.skipped = item.at("skipped").boolean();
        steps.push_back(step);
    }
    return steps;
}

std::vector<TimelinePoint> read_timeline(const JsonReader& json) {
    const std::vector<JsonReader> seconds = json.at("seconds").items();
    std::vector<TimelinePoint> timeline(seconds.size());
    std::size_t columns = 1;
    const auto read_column = [&](std::string_view key, const auto& read) {
        const std::vector<JsonReader> column = json.at(key).items();
        if (column.size() != timeline.size())
            json.at(key).fail(
                fmt::format("{} entries, and {} of seconds", column.size(), timeline.size()));
        for (std::size_t i = 0; i < timeline.size(); ++i) read(timeline[i], column[i]);
        ++columns;
    };
    double before = 0;
    for (std::size_t i = 0; i < timeline.size(); ++i) {
        timeline[i].seconds = seconds[i].number();
        if (timeline[i].seconds < before) seconds[i].fail("is before the one above");
        before = timeline[i].seconds;
    }
    read_column("phase", [](TimelinePoint& point, const JsonReader& phase) {
        point.phase = scenarios::read_named<Phase>(phase, memory::kPhases);
    });
    for (std::size_t c = 0; c < memory::kCategories; ++c)
        read_column(name_of(static_cast<Category>(c)),
                    [&](TimelinePoint& point, const JsonReader& bytes) {
                        point.live_bytes[c] = read_count(bytes);
                    });
    if (json.json().size() != columns) json.fail("has columns that are no category");
    return timeline;
}

void check_format(const JsonReader& json) {
    if (!is_train_json(json.json()))
        json.fail(
            fmt::format("this is no record of `zeroproof train`: there is no \"format\": \"{}\"",
                        kTrainFormat));
    if (json.at("version").integer(1, kMost) != kTrainVersion)
        json.at("version").fail(fmt::format("this program reads version {}", kTrainVersion));
}

}  // namespace

bool is_train_json(const Json& document) {
    return document.is_object() && document.contains("format") &&
           document.at("format") == kTrainFormat;
}

TrainRecord read_train_json(const Json& document, const std::string& file) {
    const JsonReader json(document, file);
    check_format(json);
    json.allow({"format",
                "version",
                "zeroproof_version",
                "command",
                "started",
                "complete",
                "ended_by",
                "data",
                "plan",
                "parameters",
                "resumed_at",
                "tokens_per_second",
                "resident_before_bytes",
                "resident_peak_bytes",
                "formula_bytes",
                "predicted",
                "by_rank",
                "traffic",
                "steps",
                "timeline"});
    TrainRecord record;
    record.zeroproof_version = json.at("zeroproof_version").text();
    record.command = json.at("command").text();
    record.started = json.at("started").text();
    record.complete = json.at("complete").boolean();
    const JsonReader ended_by = json.at("ended_by");
    if (record.complete != ended_by.json().is_null())
        ended_by.fail("a run that is not complete says why, and no other does");
    if (!record.complete) record.ended_by = ended_by.text();
    record.data = json.at("data").text();
    record.plan = read_plan(json.at("plan"));
    record.parameters = read_count(json.at("parameters"), 1);
    record.resumed_at = json.at("resumed_at").integer(0, kMost);
    record.resident_before_bytes = read_count(json.at("resident_before_bytes"));
    record.resident_peak_bytes = read_count(json.at("resident_peak_bytes"));
    record.predicted = read_predicted(json.at("predicted"));
    record.by_rank = read_ranks(json.at("by_rank"), record.plan.world_ranks());
    record.traffic = read_traffic(json.at("traffic"));
    record.steps = read_steps(json.at("steps"), record.resumed_at, record.plan.steps);
    const auto reached = record.resumed_at + static_cast<std::int64_t>(record.steps.size());
    if (record.complete && reached < record.plan.steps)
        json.at("steps").fail(fmt::format("end with {} of {}, and the run is called complete",
                                          reached, record.plan.steps));
    if (record.by_rank.empty() != (record.steps.empty() || !record.complete))
        json.at("by_rank").fail(
            "has entries, or none, where a run that ended early or took no step has none");
    std::vector<TimelinePoint> timeline = read_timeline(json.at("timeline"));
    if (!record.by_rank.empty()) record.by_rank.front().timeline = std::move(timeline);
    return record;
}

}  // namespace zeroproof::harness
