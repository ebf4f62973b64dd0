// A folder of its own that goes when its owner does.
#pragma once

#include <filesystem>

namespace zeroproof::harness {

class TemporaryFolder {
  public:
    // Throws std::filesystem::filesystem_error when none can be made.
    TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder();

    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

}  // namespace zeroproof::harness
