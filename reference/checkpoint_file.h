// The bytes of one rank's checkpoint file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "reference/stage.h"

namespace zeroproof::reference {

struct SavedSlice {
    std::string parameter;
    std::uint64_t parameter_elements = 0;  // of the whole parameter, by which it is recognised
    std::uint64_t begin = 0;
    std::vector<float> master;
    // Empty for a frozen parameter, otherwise as long as master:
    std::vector<float> momentum;
    std::vector<float> variance;
};

struct CheckpointFile {
    std::uint32_t rank = 0;
    std::uint32_t ranks = 0;
    Progress progress;
    std::vector<SavedSlice> slices;
};

// Written beside its name and renamed, so that no reader sees half of it.
void write_file(const CheckpointFile& file, const std::filesystem::path& path);
// Trusts nothing it reads: ranks, progress and slices are in range. Throws BadCheckpoint, naming
// the file and what is wrong.
CheckpointFile read_file(const std::filesystem::path& path);

}  // namespace zeroproof::reference
