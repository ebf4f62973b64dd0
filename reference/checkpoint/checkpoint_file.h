// The bytes of one rank's checkpoint file. The last eight are a checksum of all before them, by
// which a read finds what a disk or a network has changed.
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

// Writes all of it or nothing, and flushes it to the disk. Throws BadCheckpoint with the file and
// the system's reason.
void write_file(const CheckpointFile& file, const std::filesystem::path& path);
// Trusts nothing it reads: the checksum is right, and ranks, progress and slices are in range,
// since a checksum is no proof of who wrote the file. Throws BadCheckpoint, naming the file and
// what is wrong.
CheckpointFile read_file(const std::filesystem::path& path);

}  // namespace zeroproof::reference
