// The checkpoints of one run: a folder for each, of which the newest is always whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "reference/checkpoint/checkpoint.h"

namespace zeroproof::reference {

// FOLDER/step-00000050 is the checkpoint after 50 steps, skipped ones counted too. It is written as
// FOLDER/step-00000050.unfinished and renamed once every rank's file is on the disk, so a folder
// without that ending is whole, and a run that is killed at any moment leaves the one before.
class CheckpointSeries {
  public:
    // The newest `keep` checkpoints stay. Throws std::invalid_argument if that is none at all.
    explicit CheckpointSeries(std::filesystem::path folder, std::size_t keep = 2);

    // Between two windows. Makes the folder if there is none, and replaces a checkpoint of the same
    // step. `description` says of which run this is, in JSON of the caller's choice; that of rank 0
    // is kept as run.json beside the files. Throws BadCheckpoint on every rank if one could not
    // write, and then the checkpoints that were there stay. Collective.
    void save(Stage& stage, const Model& model, const std::string& description);

    // That of the most steps. Throws BadCheckpoint, saying what is there, if there is none.
    std::filesystem::path newest() const;

    // A run that was taken back to an earlier step would be saved behind the checkpoints of later
    // ones: newest() would not find it, and the oldest to be removed would be its own. Throws
    // BadCheckpoint if there is a checkpoint of more than `steps`. save() checks this; asked before
    // the first step, no step is lost.
    void require_none_after(std::int64_t steps) const;

  private:
    // What rank 0 does before and after every rank writes its file.
    void begin(std::int64_t steps, const std::string& description) const;
    void finish(std::int64_t steps) const;

    std::filesystem::path folder_;
    std::size_t keep_;
};

// What save() was given with this checkpoint. Throws BadCheckpoint if it cannot be read.
std::string read_description(const std::filesystem::path& checkpoint);

// For a message that `checkpoint` cannot be loaded: which others lie beside it, newest first, and
// empty if none does.
std::string other_checkpoints(const std::filesystem::path& checkpoint);

}  // namespace zeroproof::reference
