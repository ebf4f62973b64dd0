#include "reference/checkpoint/checkpoint_series.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <map>
#include <optional>
#include <system_error>
#include <vector>

#include "reference/checkpoint/whole_file.h"

namespace zeroproof::reference {

namespace fs = std::filesystem;

namespace {

constexpr const char* kDescription = "run.json";
constexpr std::string_view kUnfinished = ".unfinished";

std::string name_of(std::int64_t steps) {
    return fmt::format("step-{:08}", steps);
}

// Nothing for what save() has not named, and for what is unfinished.
std::optional<std::int64_t> steps_of(const std::string& name) {
    constexpr std::string_view kBegin = "step-";
    if (!name.starts_with(kBegin)) return std::nullopt;
    std::int64_t steps = 0;
    std::from_chars(name.data() + kBegin.size(), name.data() + name.size(), steps);
    if (name != name_of(steps)) return std::nullopt;
    return steps;
}

bool is_unfinished(const std::string& name) {
    return name.ends_with(kUnfinished) &&
           steps_of(name.substr(0, name.size() - kUnfinished.size())).has_value();
}

fs::path unfinished_of(const fs::path& folder, std::int64_t steps) {
    return folder / fmt::format("{}{}", name_of(steps), kUnfinished);
}

std::vector<std::string> names_in(const fs::path& folder) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
        names.push_back(at->path().filename().string());
    if (error)
        throw BadCheckpoint(
            fmt::format("{}: cannot be read: {}", folder.string(), error.message()));
    std::ranges::sort(names);
    return names;
}

// The whole checkpoints, by their steps.
std::map<std::int64_t, fs::path> checkpoints_in(const fs::path& folder) {
    std::map<std::int64_t, fs::path> found;
    for (const std::string& name : names_in(folder))
        if (const auto steps = steps_of(name)) found[*steps] = folder / name;
    return found;
}

// Where there is a checkpoint of that name already, the two change names in one step, so that at
// any moment one of them is there; the old one is then the unfinished one.
void rename_or_exchange(const fs::path& unfinished, const fs::path& whole) {
    const unsigned flags = fs::exists(whole) ? RENAME_EXCHANGE : 0;
    if (::renameat2(AT_FDCWD, unfinished.c_str(), AT_FDCWD, whole.c_str(), flags) != 0) {
        const std::string reason = std::generic_category().message(errno);
        throw BadCheckpoint(fmt::format("{}: cannot be renamed to {}: {}", unfinished.string(),
                                        whole.filename().string(), reason));
    }
}

// Of a run that was killed while it saved or removed.
void remove_unfinished(const fs::path& folder) {
    for (const std::string& name : names_in(folder))
        if (is_unfinished(name)) fs::remove_all(folder / name);
}

}  // namespace

CheckpointSeries::CheckpointSeries(fs::path folder, std::size_t keep)
    : folder_(std::move(folder)), keep_(keep) {
    if (keep_ == 0) throw std::invalid_argument("a series that keeps no checkpoint");
}

void CheckpointSeries::save(Stage& stage, const Model& model, const std::string& description) {
    const Progress progress = stage.progress();
    const std::int64_t steps = progress.steps_taken + progress.steps_skipped;
    const fs::path unfinished = unfinished_of(folder_, steps);
    const collectives::Communicator* cut_over = stage.tensor_parallel();
    const bool leads = stage.rank() == 0 && (cut_over == nullptr || cut_over->rank() == 0);
    try {
        write_together(stage, [&] {
            if (leads) begin(steps, description);
        });
        save_checkpoint(stage, model, unfinished);
        write_together(stage, [&] {
            if (leads) finish(steps);
        });
    } catch (const BadCheckpoint&) {
        std::error_code ignored;  // the next save tries again
        if (leads) fs::remove_all(unfinished, ignored);
        throw;
    }
}

void CheckpointSeries::begin(std::int64_t steps, const std::string& description) const {
    if (fs::create_directories(folder_)) flush_folder(folder_ / "..");
    require_none_after(steps);
    remove_unfinished(folder_);
    const fs::path unfinished = unfinished_of(folder_, steps);
    fs::create_directory(unfinished);
    write_whole(description, unfinished / kDescription);
}

void CheckpointSeries::finish(std::int64_t steps) const {
    rename_or_exchange(unfinished_of(folder_, steps), folder_ / name_of(steps));
    flush_folder(folder_);  // before anything older is removed
    std::map<std::int64_t, fs::path> whole = checkpoints_in(folder_);
    // Half removed it must not pass for a whole one.
    for (; whole.size() > keep_; whole.erase(whole.begin()))
        fs::rename(whole.begin()->second, unfinished_of(folder_, whole.begin()->first));
    remove_unfinished(folder_);
}

fs::path CheckpointSeries::newest() const {
    const std::map<std::int64_t, fs::path> whole = checkpoints_in(folder_);
    if (whole.empty()) {
        const std::vector<std::string> names = names_in(folder_);
        throw BadCheckpoint(fmt::format(
            "{}: holds no checkpoint, that is no step-NUMBER. It holds {}", folder_.string(),
            names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", "))));
    }
    return whole.rbegin()->second;
}

void CheckpointSeries::require_none_after(std::int64_t steps) const {
    if (!fs::exists(folder_)) return;
    const std::map<std::int64_t, fs::path> whole = checkpoints_in(folder_);
    if (!whole.empty() && whole.rbegin()->first > steps)
        throw BadCheckpoint(
            fmt::format("{}: is later than step {}, from where this run would go on. Move it away, "
                        "or save into another folder",
                        whole.rbegin()->second.string(), steps));
}

std::string read_description(const fs::path& checkpoint) {
    return read_whole(checkpoint / kDescription);
}

std::string other_checkpoints(const fs::path& checkpoint) {
    // Less its "." and its last "/", the path ends with the name.
    fs::path path = fs::absolute(checkpoint).lexically_normal();
    if (!path.has_filename()) path = path.parent_path();
    std::vector<std::string> others;
    try {
        for (const auto& [steps, other] : checkpoints_in(path.parent_path()))
            if (other != path) others.push_back(other.string());
    } catch (const BadCheckpoint&) {
        return "";  // the message has a reason of its own already
    }
    if (others.empty()) return "";
    std::ranges::reverse(others);
    return fmt::format("; other checkpoints of this run: {}", fmt::join(others, ", "));
}

}  // namespace zeroproof::reference
