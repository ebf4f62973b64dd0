#include "harness/train/train_checkpoint.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "scenarios/json_reader.h"

namespace zeroproof::harness {

namespace fs = std::filesystem;

using reference::BadCheckpoint;
using scenarios::Json;

fs::path series_folder(const fs::path& folder, const TrainPlan& plan, int tensor_parallel_rank) {
    if (plan.tensor_parallel == 1) return folder;
    return folder / fmt::format("tensor-{}-of-{}", tensor_parallel_rank, plan.tensor_parallel);
}

std::string run_description(const TrainPlan& plan) {
    Json run = {{"format", "zeroproof training run"}, {"version", 1}};
    run.update(scenarios::sizes_of(plan.model));
    run["seed"] = plan.seed;
    run["samples_of_step"] = plan.samples_of_step();
    return run.dump(1);
}

fs::path checkpoint_to_resume(const TrainPlan& plan, int tensor_parallel_rank) {
    const fs::path given = plan.resume_from;
    if (!fs::exists(given))
        throw BadCheckpoint(fmt::format("--resume {}: there is no such folder", given.string()));
    const fs::path folder = series_folder(given, plan, tensor_parallel_rank);
    const bool is_checkpoint = fs::exists(given / "run.json");
    if (!is_checkpoint && !fs::exists(folder))
        throw BadCheckpoint(
            fmt::format("--resume {}: has no checkpoints of {} tensor-parallel ranks; a run goes "
                        "on with as many "
                        "as it began with",
                        given.string(), plan.tensor_parallel));
    const fs::path checkpoint =
        is_checkpoint ? given : reference::CheckpointSeries(folder).newest();
    const std::string file = (checkpoint / "run.json").string();
    const Json saved = scenarios::parse_json(reference::read_description(checkpoint), file);
    const Json ours = Json::parse(run_description(plan));
    for (const auto& [key, value] : ours.items()) {
        const Json theirs = saved.is_object() && saved.contains(key) ? saved[key] : Json(nullptr);
        if (theirs != value)
            throw BadCheckpoint(fmt::format(
                "{}: is of a run whose {} is {}, that of this one is {}{}", file, key,
                theirs.dump(), value.dump(),
                key == "samples_of_step" ? ": ranks x batch x micro-steps must stay the same"
                                         : ""));
    }
    return checkpoint;
}

}  // namespace zeroproof::harness
