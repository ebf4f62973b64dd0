// Files that a program under test has written: nothing about them can be relied on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace zeroproof::harness {

// A regular file, open for reading. Reads at most what it held when it was opened.
class UntrustedFile {
  public:
    // `relative`, of plain names, under `folder`. No component of it is a symbolic link, nor is
    // `folder` itself. Empty if there is no such file. Throws scenarios::BadInput for anything but
    // a regular file of at most `most_bytes`; opening a pipe or a device does not block.
    static std::optional<UntrustedFile> open(const std::filesystem::path& folder,
                                             const std::filesystem::path& relative,
                                             std::uint64_t most_bytes);
    // As `open`. Throws also if there is no such file.
    static UntrustedFile demand(const std::filesystem::path& folder,
                                const std::filesystem::path& relative, std::uint64_t most_bytes);
    UntrustedFile(UntrustedFile&& other) noexcept;
    UntrustedFile& operator=(UntrustedFile&&) = delete;
    ~UntrustedFile();

    const std::string& name() const { return name_; }  // for messages
    std::uint64_t size() const { return size_; }
    // Throws scenarios::BadInput if the file has become shorter.
    void read(std::uint64_t offset, std::span<std::byte> bytes) const;
    std::string text() const;

  private:
    UntrustedFile(std::string name, int descriptor, std::uint64_t size)
        : name_(std::move(name)), descriptor_(descriptor), size_(size) {}

    std::string name_;
    int descriptor_;
    std::uint64_t size_;
};

}  // namespace zeroproof::harness
