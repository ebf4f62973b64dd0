// Checkpoints: one file per rank, read back at any stage and any number of ranks.
#pragma once

#include <filesystem>
#include <functional>
#include <stdexcept>

#include "reference/stage.h"

namespace zeroproof::reference {

// A checkpoint that is missing, damaged, or of another model. Names the file, or the files where
// none of them alone is at fault.
class BadCheckpoint : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Each file says what it holds: for each slice that its rank owns, the parameter's name and number
// of elements, the first element, and master, momentum and variance; steps taken and skipped, and
// the loss scale. Rank 0 adds the frozen parameters. Where weights are cut, each tensor-parallel
// rank has a folder of its own in `folder`, for the files of its data-parallel ranks. The folder
// exists; files appear whole, under their final names. Collective: returns once every rank has
// written, and throws BadCheckpoint on every rank if one could not.
void save_checkpoint(Stage& stage, const Model& model, const std::filesystem::path& folder);

// Every rank reads and checks all files, so that all ranks judge alike, and then takes what
// overlaps with what it owns. Throws BadCheckpoint before anything of the stage is changed. Where
// files are missing or damaged, it names other checkpoints of the run. Collective.
void load_checkpoint(Stage& stage, const Model& model, const std::filesystem::path& folder);

// Runs `write`, which sends nothing, and then learns how the other ranks fared: one that threw and
// was gone would leave them waiting for it. Throws BadCheckpoint on every rank, tensor-parallel
// ones too, if `write` threw on one: there with its reason, elsewhere with that of the lowest.
// Collective.
void write_together(Stage& stage, const std::function<void()>& write);

}  // namespace zeroproof::reference
