#include "reference/checkpoint/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "reference/checkpoint/checkpoint.h"

namespace zeroproof::reference {

namespace {

// With the reason that the last call to the system gave.
[[noreturn]] void fail(const std::filesystem::path& path, const char* what) {
    const std::string reason = std::generic_category().message(errno);
    throw BadCheckpoint(fmt::format("{}: cannot be {}: {}", path.string(), what, reason));
}

// The system's own calls, since a std::ofstream neither gives reasons nor flushes to the disk.
class OpenFile {
  public:
    OpenFile(const std::filesystem::path& path, int flags, const char* what)
        : path_(path), descriptor_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
        if (descriptor_ < 0) fail(path_, what);
    }
    ~OpenFile() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;

    void write(std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
            if (written > 0)
                bytes.remove_prefix(static_cast<std::size_t>(written));
            else if (written == 0 || errno != EINTR)
                fail(path_, "written");
        }
    }
    std::string read() {
        std::string bytes;
        char piece[1 << 16];
        while (true) {
            const ssize_t got = ::read(descriptor_, piece, sizeof piece);
            if (got == 0) return bytes;
            if (got > 0)
                bytes.append(piece, static_cast<std::size_t>(got));
            else if (errno != EINTR)
                fail(path_, "read");
        }
    }
    void flush() {
        if (::fsync(descriptor_) != 0) fail(path_, "flushed to the disk");
    }
    // Some file systems say only here that the disk was full.
    void close() {
        if (::close(std::exchange(descriptor_, -1)) != 0) fail(path_, "written");
    }

  private:
    const std::filesystem::path& path_;
    int descriptor_;
};

}  // namespace

void write_whole(std::string_view bytes, const std::filesystem::path& path) {
    std::filesystem::path unfinished = path;
    unfinished += ".unfinished";
    OpenFile file(unfinished, O_WRONLY | O_CREAT | O_TRUNC, "written");
    try {
        file.write(bytes);
        file.flush();  // before the name is given, or the name could outlast what it names
        file.close();
        if (::rename(unfinished.c_str(), path.c_str()) != 0) fail(path, "written");
    } catch (const BadCheckpoint&) {
        ::unlink(unfinished.c_str());
        throw;
    }
    const std::filesystem::path folder = path.parent_path();
    flush_folder(folder.empty() ? "." : folder);
}

std::string read_whole(const std::filesystem::path& path) {
    return OpenFile(path, O_RDONLY, "read").read();
}

void flush_folder(const std::filesystem::path& folder) {
    OpenFile(folder, O_RDONLY | O_DIRECTORY, "flushed to the disk").flush();
}

}  // namespace zeroproof::reference
