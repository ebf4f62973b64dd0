#include "harness/protocol/untrusted_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "scenarios/json_reader.h"

namespace zeroproof::harness {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
    throw scenarios::BadInput(fmt::format("{}: {}", name, why));
}

std::string reason(int error) {
    // What open says of a symbolic link, of a folder or of a file.
    if (error == ELOOP || error == ENOTDIR) return "is behind a symbolic link, or no folder";
    return std::system_category().message(error);
}

// Closes it at the end.
class Descriptor {
  public:
    explicit Descriptor(int number) : number_(number) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (number_ >= 0) close(number_);
    }
    void become(int number) {
        if (number_ >= 0) close(number_);
        number_ = number;
    }
    int number() const { return number_; }
    int release() { return std::exchange(number_, -1); }

  private:
    int number_;
};

}  // namespace

std::optional<UntrustedFile> UntrustedFile::open(const fs::path& folder, const fs::path& relative,
                                                 std::uint64_t most_bytes) {
    const std::string name = (folder / relative).string();
    // Component by component: O_NOFOLLOW concerns the last one alone.
    Descriptor at(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (at.number() < 0) {
        if (errno == ENOENT) return std::nullopt;
        refuse(name, reason(errno));
    }
    for (auto part = relative.begin(); part != relative.end(); ++part) {
        const bool last = std::next(part) == relative.end();
        // Without O_NONBLOCK, opening a pipe would wait for somebody who writes into it.
        const int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | (last ? 0 : O_DIRECTORY);
        const int next = openat(at.number(), part->c_str(), flags);
        if (next < 0) {
            if (errno == ENOENT) return std::nullopt;
            refuse(name, reason(errno));
        }
        at.become(next);
    }
    struct stat status {};
    if (fstat(at.number(), &status) != 0) refuse(name, reason(errno));
    if (!S_ISREG(status.st_mode)) refuse(name, "is no regular file");
    const auto size = static_cast<std::uint64_t>(status.st_size);
    if (size > most_bytes)
        refuse(name, fmt::format("has {} bytes; at most {} are expected", size, most_bytes));
    return UntrustedFile(name, at.release(), size);
}

UntrustedFile UntrustedFile::demand(const fs::path& folder, const fs::path& relative,
                                    std::uint64_t most_bytes) {
    auto file = open(folder, relative, most_bytes);
    if (!file) refuse((folder / relative).string(), "is missing");
    return std::move(*file);
}

UntrustedFile::UntrustedFile(UntrustedFile&& other) noexcept
    : name_(std::move(other.name_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

UntrustedFile::~UntrustedFile() {
    if (descriptor_ >= 0) close(descriptor_);
}

void UntrustedFile::read(std::uint64_t offset, std::span<std::byte> bytes) const {
    while (!bytes.empty()) {
        const ssize_t got =
            pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) refuse(name_, std::system_category().message(errno));
        if (got == 0) refuse(name_, "became shorter while it was read: rename it into place");
        offset += static_cast<std::uint64_t>(got);
        bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
}

std::string UntrustedFile::text() const {
    std::string text(size_, '\0');
    read(0, std::as_writable_bytes(std::span(text)));
    return text;
}

}  // namespace zeroproof::harness
