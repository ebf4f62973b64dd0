#include "reference/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>

#include "reference/checkpoint_file.h"

namespace zeroproof::reference {

namespace {

std::filesystem::path file_of(const std::filesystem::path& folder, std::size_t rank) {
    return folder / fmt::format("rank-{:05}.zpck", rank);
}

std::vector<CheckpointFile> read_all(const std::filesystem::path& folder) {
    std::vector<CheckpointFile> files{read_file(file_of(folder, 0))};
    const std::size_t ranks = files.front().ranks;
    for (std::size_t rank = 1; rank < ranks; ++rank)
        files.push_back(read_file(file_of(folder, rank)));
    for (std::size_t rank = 0; rank < ranks; ++rank)
        if (files[rank].rank != rank || files[rank].ranks != ranks)
            throw BadCheckpoint(fmt::format("{}: says that it is rank {} of {}",
                                            file_of(folder, rank).string(), files[rank].rank,
                                            files[rank].ranks));
    return files;
}

// Copies what `saved` and the elements [begin, begin + target.size()) have in common. Returns how
// many elements that is.
std::size_t copy_overlap(const std::vector<float>& saved, std::size_t saved_begin,
                         std::span<float> target, std::size_t begin) {
    const std::size_t first = std::max(saved_begin, begin);
    const std::size_t last = std::min(saved_begin + saved.size(), begin + target.size());
    if (first >= last) return 0;
    std::copy_n(saved.begin() + static_cast<std::ptrdiff_t>(first - saved_begin), last - first,
                target.begin() + static_cast<std::ptrdiff_t>(first - begin));
    return last - first;
}

void load_slice(const Slice& slice, Stage& stage, const std::string& name,
                const std::vector<CheckpointFile>& files, const std::filesystem::path& folder) {
    std::size_t covered = 0;
    for (const CheckpointFile& file : files)
        for (const SavedSlice& saved : file.slices) {
            if (saved.parameter != name || saved.momentum.empty()) continue;
            covered += copy_overlap(saved.master, saved.begin, stage.master(slice), slice.begin);
            copy_overlap(saved.momentum, saved.begin, stage.momentum(slice), slice.begin);
            copy_overlap(saved.variance, saved.begin, stage.variance(slice), slice.begin);
        }
    if (covered != slice.elements)
        throw BadCheckpoint(fmt::format("{}: has {} of the {} elements of '{}' from {}",
                                        folder.string(), covered, slice.elements, name,
                                        slice.begin));
}

void load_frozen(std::size_t parameter, Stage& stage, const Model& model,
                 const std::vector<CheckpointFile>& files, const std::filesystem::path& folder) {
    const Parameter& frozen = model.parameters()[parameter];
    std::vector<float> values(frozen.elements);
    std::size_t covered = 0;
    for (const CheckpointFile& file : files)
        for (const SavedSlice& saved : file.slices)
            if (saved.parameter == frozen.name && saved.momentum.empty())
                covered += copy_overlap(saved.master, saved.begin, values, 0);
    if (covered != frozen.elements)
        throw BadCheckpoint(fmt::format("{}: has {} of the {} elements of frozen '{}'",
                                        folder.string(), covered, frozen.elements, frozen.name));
    stage.write_frozen(parameter, values);
}

}  // namespace

void save_checkpoint(Stage& stage, const Model& model, const std::filesystem::path& folder) {
    CheckpointFile file;
    file.rank = static_cast<std::uint32_t>(stage.rank());
    file.ranks = static_cast<std::uint32_t>(stage.ranks());
    file.progress = stage.progress();
    const auto copy = [](std::span<const float> values) {
        return std::vector<float>(values.begin(), values.end());
    };
    // Where each rank owns everything, one copy is enough.
    if (stage.is_partitioned() || stage.rank() == 0)
        for (const Slice& slice : stage.owned())
            file.slices.push_back({model.parameters()[slice.parameter].name, slice.begin,
                                   copy(stage.master(slice)), copy(stage.momentum(slice)),
                                   copy(stage.variance(slice))});
    for (std::size_t p = 0; p < model.parameters().size(); ++p) {
        const Parameter& parameter = model.parameters()[p];
        if (parameter.trainable) continue;
        std::vector<float> values(parameter.elements);
        stage.read_weights(p, values);
        if (stage.rank() == 0) file.slices.push_back({parameter.name, 0, values, {}, {}});
    }
    write_file(file, file_of(folder, stage.rank()));
    stage.barrier();
}

void load_checkpoint(Stage& stage, const Model& model, const std::filesystem::path& folder) {
    const std::vector<CheckpointFile> files = read_all(folder);
    for (const Slice& slice : stage.owned())
        load_slice(slice, stage, model.parameters()[slice.parameter].name, files, folder);
    for (std::size_t p = 0; p < model.parameters().size(); ++p)
        if (!model.parameters()[p].trainable) load_frozen(p, stage, model, files, folder);
    stage.restore(files.front().progress);
    stage.publish();
}

}  // namespace zeroproof::reference
