#include "harness/cli/train.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <limits>
#include <optional>

#include "harness/train/run_training.h"
#include "harness/train/train_json.h"
#include "harness/train/train_terminal.h"
#include "harness/version.h"
#include "harness/writers/writer.h"
#include "reference/checkpoint/checkpoint.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {

namespace {

constexpr int kNotAsPredicted = 1;
constexpr int kRanksFailed = 4;

reference::Precision precision_named(const std::string& name) {
    if (name == "bf16") return reference::Precision::bf16;
    if (name == "fp16") return reference::Precision::fp16;
    return reference::Precision::fp32;
}

TrainPlan plan_of(const TrainCommand& options) {
    TrainPlan plan;
    plan.model = scenarios::load_transformer_model(options.model);
    plan.stage = options.stage;
    plan.ranks = options.ranks;
    plan.tensor_parallel = options.tensor_parallel;
    plan.precision = precision_named(options.precision);
    plan.steps = options.steps;
    plan.samples = options.batch;
    plan.micro_steps = options.micro_steps;
    plan.learning_rate = static_cast<float>(options.learning_rate);
    plan.weight_decay = static_cast<float>(options.weight_decay);
    plan.warm_up_steps = options.warm_up;
    plan.clip_norm = options.clip;
    plan.seed = options.seed;
    plan.bucket_elements = options.bucket_elements;
    plan.overlap = !options.no_overlap;
    plan.prefetch = !options.no_overlap;
    plan.blocks_per_checkpoint = options.recompute;
    plan.partition_checkpoints = options.partition_activations;
    plan.offload_checkpoints = options.offload_activations;
    plan.contiguous_checkpoints = options.contiguous_activations;
    if (options.capacity_bytes > 0) plan.capacity_bytes = options.capacity_bytes;
    plan.checkpoint_folder = options.checkpoint_folder;
    plan.checkpoint_every = options.checkpoint_every;
    plan.resume_from = options.resume;
    // A run that goes on keeps its checkpoints where they are, unless told otherwise.
    const bool is_series =
        !options.resume.empty() && !std::filesystem::exists(options.resume + "/run.json");
    if (plan.checkpoint_folder.empty() && is_series) plan.checkpoint_folder = options.resume;
    plan.timeline_end = plan.timeline_begin + options.trace_steps;
    plan.timeout = std::chrono::seconds(options.timeout_seconds);
    check(plan);
    return plan;
}

// Activations are taken and returned in every step. Memory that goes back to the system in between
// costs a page fault for every 4 KiB of it.
void keep_freed_memory() {
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

// Before the first step, so that none is lost. Throws Unwritable.
void check_folder(const std::filesystem::path& folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error)
        throw Unwritable(fmt::format("cannot write {}: {}", folder.string(), error.message()));
    check_writable(folder / "run.json");
}

void write_views(const TrainCommand& options, const TrainRecord& record) {
    if (!options.json_file.empty()) write_whole(options.json_file, train_json(record));
    if (!options.trace_file.empty()) write_whole(options.trace_file, chrome_trace(record));
}

}  // namespace

int train_command(const TrainCommand& options) {
    if (options.list) {
        fmt::print("{}", known_models());
        return 0;
    }
    for (const std::string& file : {options.json_file, options.trace_file, options.tensors_file})
        if (!file.empty()) check_writable(file);
    TrainRecord record;
    record.zeroproof_version = kVersion;
    record.command = options.command;
    record.started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
    record.plan = plan_of(options);
    const std::size_t sequence = record.plan.model.sequence;
    const TextFile& shipped = text_files().front();
    record.data = options.data.empty() ? std::string(shipped.name) : options.data;
    const TextData data = options.data.empty()
                              ? TextData(std::string(shipped.text), record.data, sequence)
                              : TextData::of_file(options.data, sequence);

    if (!record.plan.checkpoint_folder.empty()) check_folder(record.plan.checkpoint_folder);

    const bool shows =
        options.progress == "always" || (options.progress == "auto" && isatty(STDERR_FILENO) != 0);
    std::optional<TensorLog> tensors;
    if (!options.tensors_file.empty()) tensors.emplace(record.plan);
    TrainingProgress progress(record.plan, shows);
    fmt::print("{}", training_header(record.plan, data));
    std::fflush(stdout);
    keep_freed_memory();
    try {
        run_training(data,
                     {.step = [&](const StepResult& step) { progress.step(step); },
                      .tensors = tensors ? &*tensors : nullptr},
                     record);
    } catch (const memory::OutOfMemory& error) {
        record.ended_by = error.what();
        progress.end();
        write_views(options, record);
        fmt::print(stderr, "zeroproof train: {}\n{}", error.what(), what_would_fit(record.plan));
        return kRanksFailed;
    }
    progress.end();
    write_views(options, record);
    if (!record.complete) {
        fmt::print(stderr, "zeroproof train: {}\n", record.ended_by);
        return kRanksFailed;
    }
    if (tensors) write_whole(options.tensors_file, tensors->bytes());
    fmt::print("{}", training_summary(record));
    return is_as_predicted(record) ? 0 : kNotAsPredicted;
}

}  // namespace zeroproof::harness
