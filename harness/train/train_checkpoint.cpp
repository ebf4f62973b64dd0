#include "harness/train/train_checkpoint.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "scenarios/json_reader.h"

namespace zeroproof::harness {

namespace fs = std::filesystem;

using reference::BadCheckpoint;
using scenarios::Json;

std::string run_description(const TrainPlan& plan) {
    Json run = {{"format", "zeroproof training run"}, {"version", 1}};
    run.update(scenarios::sizes_of(plan.model));
    run["tensor_parallel"] = plan.tensor_parallel;
    run["seed"] = plan.seed;
    run["samples_of_step"] = plan.samples_of_step();
    return run.dump(1);
}

fs::path checkpoint_to_resume(const TrainPlan& plan) {
    const fs::path given = plan.resume_from;
    if (!fs::exists(given))
        throw BadCheckpoint(fmt::format("--resume {}: there is no such folder", given.string()));
    const fs::path checkpoint =
        fs::exists(given / "run.json") ? given : reference::CheckpointSeries(given).newest();
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
