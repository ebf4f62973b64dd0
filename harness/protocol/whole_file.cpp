#include "harness/protocol/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "harness/writers/writer.h"

namespace zeroproof::harness {

namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, int error) {
    throw Unwritable(
        fmt::format("cannot write {}: {}", path.string(), std::system_category().message(error)));
}

}  // namespace

WholeFile::WholeFile(std::filesystem::path target) : target_(std::move(target)) {
    // Ranks are processes or threads that write beside each other, but no two write one file.
    beside_ =
        target_.parent_path() / fmt::format(".{}.{}.tmp", target_.filename().string(), getpid());
    descriptor_ =
        open(beside_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (descriptor_ < 0) refuse(target_, errno);
}

WholeFile::~WholeFile() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!finished_) unlink(beside_.c_str());
}

void WholeFile::write(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) refuse(target_, errno);
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
}

void WholeFile::finish() {
    const int closed = close(descriptor_);
    descriptor_ = -1;
    if (closed != 0) refuse(target_, errno);
    if (rename(beside_.c_str(), target_.c_str()) != 0) refuse(target_, errno);
    finished_ = true;
}

}  // namespace zeroproof::harness
