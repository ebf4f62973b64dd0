// A file that another process sees whole or not at all.
#pragma once

#include <filesystem>
#include <string_view>

namespace zeroproof::harness {

// Written under another name beside its target, in pieces. Unlike write_whole it does not wait for
// the disk: these files do not outlive the run, and there are many.
class WholeFile {
  public:
    // Throws Unwritable, as do the others.
    explicit WholeFile(std::filesystem::path target);
    WholeFile(const WholeFile&) = delete;
    WholeFile& operator=(const WholeFile&) = delete;
    ~WholeFile();  // without `finish` nothing is left

    void write(std::string_view bytes);
    // Gives the file its name. A symbolic link that has it is replaced, not followed.
    void finish();

  private:
    std::filesystem::path target_;
    std::filesystem::path beside_;
    int descriptor_ = -1;
    bool finished_ = false;
};

}  // namespace zeroproof::harness
