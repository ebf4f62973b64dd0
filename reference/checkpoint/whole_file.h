// Files that a crash, a full disk or a power failure leaves whole or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace zeroproof::reference {

// Writes beside the name, flushes to the disk and renames: at any moment the name holds all of the
// old bytes or all of the new ones. Throws BadCheckpoint with the file and the system's reason, and
// leaves the old file as it was and no unfinished one.
void write_whole(std::string_view bytes, const std::filesystem::path& path);
// Throws BadCheckpoint with the file and the system's reason.
std::string read_whole(const std::filesystem::path& path);

// A name given, changed or removed in a folder outlasts a power failure only once the folder itself
// is flushed. Throws BadCheckpoint with the folder and the system's reason.
void flush_folder(const std::filesystem::path& folder);

}  // namespace zeroproof::reference
