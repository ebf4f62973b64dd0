#include "harness/writers/writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace zeroproof::harness {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& path, int error) {
    throw Unwritable(
        fmt::format("cannot write {}: {}", path.string(), std::system_category().message(error)));
}

// Behind symbolic links, which stay. A link that points nowhere is made good.
fs::path behind_links(const fs::path& path) {
    std::error_code error;
    fs::path target = path;
    for (int links = 0; fs::is_symlink(fs::symlink_status(target, error)); ++links) {
        if (links == 40) refuse(path, ELOOP);
        const fs::path next = fs::read_symlink(target, error);
        if (error) refuse(path, error.value());
        target = next.is_absolute() ? next : target.parent_path() / next;
    }
    return target;
}

// A device or a pipe cannot be replaced by a file.
bool is_written_in_place(const fs::path& target) {
    std::error_code error;
    const fs::file_status status = fs::status(target, error);
    return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

// A file beside the target that goes unless it is renamed.
class Beside {
  public:
    Beside(const fs::path& shown, const fs::path& target) : shown_(shown) {
        if (!target.has_filename()) refuse(shown, EISDIR);
        std::error_code error;
        if (fs::is_directory(target, error)) refuse(shown, EISDIR);
        // The name is short, whatever the target's length; another run may be at work beside us.
        for (int attempt = 0; descriptor_ < 0; ++attempt) {
            path_ = target.parent_path() / fmt::format(".zeroproof-{}-{}.tmp", getpid(), attempt);
            descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
            if (descriptor_ < 0 && (errno != EEXIST || attempt == 1000)) refuse(shown, errno);
        }
    }
    Beside(const Beside&) = delete;
    Beside& operator=(const Beside&) = delete;
    ~Beside() {
        if (descriptor_ >= 0) close(descriptor_);
        if (!renamed_) unlink(path_.c_str());
    }

    int descriptor() const { return descriptor_; }

    void become(const fs::path& target) {
        // Otherwise a crash of the machine could leave the name without the content.
        if (fsync(descriptor_) != 0) refuse(shown_, errno);
        const int closed = close(descriptor_);
        descriptor_ = -1;
        if (closed != 0) refuse(shown_, errno);
        if (rename(path_.c_str(), target.c_str()) != 0) refuse(shown_, errno);
        renamed_ = true;
    }

  private:
    fs::path shown_;
    fs::path path_;
    int descriptor_ = -1;
    bool renamed_ = false;
};

void write_all(const fs::path& path, int descriptor, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = write(descriptor, text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) refuse(path, errno);
        text.remove_prefix(static_cast<std::size_t>(written));
    }
}

}  // namespace

void write_whole(const fs::path& path, std::string_view text) {
    const fs::path target = behind_links(path);
    if (is_written_in_place(target)) {
        const int descriptor = open(target.c_str(), O_WRONLY | O_CLOEXEC);
        if (descriptor < 0) refuse(path, errno);
        try {
            write_all(path, descriptor, text);
        } catch (...) {
            close(descriptor);
            throw;
        }
        if (close(descriptor) != 0) refuse(path, errno);
        return;
    }
    Beside beside(path, target);
    write_all(path, beside.descriptor(), text);
    beside.become(target);
}

void check_writable(const fs::path& path) {
    const fs::path target = behind_links(path);
    if (is_written_in_place(target)) {
        if (access(target.c_str(), W_OK) != 0) refuse(path, errno);
        return;
    }
    const Beside beside(path, target);
}

}  // namespace zeroproof::harness
