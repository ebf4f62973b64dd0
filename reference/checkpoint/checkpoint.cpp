#include "reference/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "reference/checkpoint/checkpoint_file.h"
#include "reference/checkpoint/checkpoint_series.h"
#include "reference/checkpoint/whole_file.h"

namespace zeroproof::reference {

namespace {

std::filesystem::path part_of(const std::filesystem::path& folder, const Stage& stage) {
    const collectives::Communicator* cut_over = stage.tensor_parallel();
    if (cut_over == nullptr) return folder;
    return folder / fmt::format("tensor-{}-of-{}", cut_over->rank(), cut_over->size());
}

std::filesystem::path file_of(const std::filesystem::path& folder, std::size_t rank) {
    return folder / fmt::format("rank-{:05}.zpck", rank);
}

std::vector<CheckpointFile> read_all(const std::filesystem::path& folder) {
    std::vector<CheckpointFile> files{read_file(file_of(folder, 0))};
    const std::size_t ranks = files.front().ranks;
    for (std::size_t rank = 1; rank < ranks; ++rank)
        files.push_back(read_file(file_of(folder, rank)));
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        const CheckpointFile& file = files[rank];
        const std::string path = file_of(folder, rank).string();
        if (file.rank != rank || file.ranks != ranks)
            throw BadCheckpoint(
                fmt::format("{}: says that it is rank {} of {}", path, file.rank, file.ranks));
        // A later save that did not come to its end leaves files of two steps.
        if (file.progress != files.front().progress)
            throw BadCheckpoint(fmt::format(
                "{}: was saved after other steps than that of rank 0 ({} taken and {} skipped)",
                path, file.progress.steps_taken, file.progress.steps_skipped));
    }
    return files;
}

void require_same_parameters(const CheckpointFile& file, const Model& model,
                             const std::string& path) {
    for (const SavedSlice& saved : file.slices) {
        const auto known = std::ranges::find(model.parameters(), saved.parameter, &Parameter::name);
        if (known == model.parameters().end())
            throw BadCheckpoint(
                fmt::format("{}: has '{}', which is no parameter here", path, saved.parameter));
        if (saved.parameter_elements != known->elements)
            throw BadCheckpoint(fmt::format("{}: has '{}' with {} elements, here it has {}", path,
                                            saved.parameter, saved.parameter_elements,
                                            known->elements));
        if (saved.momentum.empty() == known->trainable)
            throw BadCheckpoint(fmt::format("{}: has '{}' {}, here it is not", path,
                                            saved.parameter,
                                            known->trainable ? "frozen" : "trainable"));
    }
}

// The saved pieces of a parameter, put in order, are to follow one another from its first element
// to its last. An element that lies in no piece would keep an old value, and where two pieces
// overlap, nothing says which of them is right.
void require_each_element_once(const Parameter& parameter, const std::vector<CheckpointFile>& files,
                               const std::filesystem::path& folder) {
    struct Piece {
        std::size_t begin;
        std::size_t end;
        std::size_t rank;
    };
    std::vector<Piece> pieces;
    for (const CheckpointFile& file : files)
        for (const SavedSlice& saved : file.slices)
            if (saved.parameter == parameter.name && !saved.master.empty())
                pieces.push_back({saved.begin, saved.begin + saved.master.size(), file.rank});
    pieces.push_back({parameter.elements, parameter.elements, 0});  // nothing may be missing before
    std::ranges::sort(pieces, {}, &Piece::begin);
    std::size_t end = 0;
    for (const Piece& piece : pieces) {
        if (piece.begin > end)
            throw BadCheckpoint(
                fmt::format("{} to {}: none has element {} of '{}'", file_of(folder, 0).string(),
                            file_of(folder, files.size() - 1).string(), end, parameter.name));
        if (piece.begin < end)
            throw BadCheckpoint(fmt::format("{}: has element {} of '{}', which is saved twice",
                                            file_of(folder, piece.rank).string(), piece.begin,
                                            parameter.name));
        end = piece.end;
    }
}

// Copies what `saved` and the elements [begin, begin + target.size()) have in common.
void copy_overlap(const std::vector<float>& saved, std::size_t saved_begin, std::span<float> target,
                  std::size_t begin) {
    const std::size_t first = std::max(saved_begin, begin);
    const std::size_t last = std::min(saved_begin + saved.size(), begin + target.size());
    if (first >= last) return;
    std::copy_n(saved.begin() + static_cast<std::ptrdiff_t>(first - saved_begin), last - first,
                target.begin() + static_cast<std::ptrdiff_t>(first - begin));
}

void load_slice(const Slice& slice, Stage& stage, const std::string& name,
                const std::vector<CheckpointFile>& files) {
    for (const CheckpointFile& file : files)
        for (const SavedSlice& saved : file.slices) {
            if (saved.parameter != name) continue;
            copy_overlap(saved.master, saved.begin, stage.master(slice), slice.begin);
            copy_overlap(saved.momentum, saved.begin, stage.momentum(slice), slice.begin);
            copy_overlap(saved.variance, saved.begin, stage.variance(slice), slice.begin);
        }
}

void load_frozen(std::size_t parameter, Stage& stage, const Model& model,
                 const std::vector<CheckpointFile>& files) {
    const Parameter& frozen = model.parameters()[parameter];
    std::vector<float> values(frozen.elements);
    for (const CheckpointFile& file : files)
        for (const SavedSlice& saved : file.slices)
            if (saved.parameter == frozen.name) copy_overlap(saved.master, saved.begin, values, 0);
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
            file.slices.push_back({model.parameters()[slice.parameter].name,
                                   model.parameters()[slice.parameter].elements, slice.begin,
                                   copy(stage.master(slice)), copy(stage.momentum(slice)),
                                   copy(stage.variance(slice))});
    for (std::size_t p = 0; p < model.parameters().size(); ++p) {
        const Parameter& parameter = model.parameters()[p];
        if (parameter.trainable) continue;
        std::vector<float> values(parameter.elements);
        stage.read_weights(p, values);
        if (stage.rank() == 0)
            file.slices.push_back({parameter.name, parameter.elements, 0, values, {}, {}});
    }
    write_together(stage, [&] {
        const std::filesystem::path part = part_of(folder, stage);
        if (part != folder && std::filesystem::create_directory(part)) flush_folder(folder);
        write_file(file, file_of(part, file.rank));
    });
}

void load_checkpoint(Stage& stage, const Model& model, const std::filesystem::path& checkpoint) {
    const std::filesystem::path folder = part_of(checkpoint, stage);
    // Everything is checked before anything is copied, so that a load that fails changes nothing.
    std::vector<CheckpointFile> files;
    try {
        files = read_all(folder);
    } catch (const BadCheckpoint& error) {
        throw BadCheckpoint(error.what() + other_checkpoints(checkpoint));
    }
    for (const CheckpointFile& file : files)
        require_same_parameters(file, model, file_of(folder, file.rank).string());
    for (const Parameter& parameter : model.parameters())
        require_each_element_once(parameter, files, folder);

    for (const Slice& slice : stage.owned())
        load_slice(slice, stage, model.parameters()[slice.parameter].name, files);
    for (std::size_t p = 0; p < model.parameters().size(); ++p)
        if (!model.parameters()[p].trainable) load_frozen(p, stage, model, files);
    stage.restore(files.front().progress);
    stage.publish();
}

void write_together(Stage& stage, const std::function<void()>& write) {
    std::optional<std::string> failure;
    try {
        write();
    } catch (const std::exception& error) {
        failure = error.what();
    }
    const std::string told = stage.first_text(
        failure ? fmt::format("rank {} could not write: {}", stage.rank(), *failure) : "");
    if (failure) throw BadCheckpoint(*failure);
    if (!told.empty()) throw BadCheckpoint(told);
}

}  // namespace zeroproof::reference
