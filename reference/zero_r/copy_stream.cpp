#include "reference/zero_r/copy_stream.h"

#include <cstring>

namespace zeroproof::reference {

CopyStream::CopyStream() : thread_([this] { work(); }) {}

CopyStream::~CopyStream() {
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

std::uint64_t CopyStream::start(std::byte* to, const std::byte* from, std::size_t bytes) {
    std::uint64_t number = 0;
    {
        const std::lock_guard lock(mutex_);
        waiting_.push_back({to, from, bytes});
        number = ++started_;
    }
    changed_.notify_all();
    return number;
}

void CopyStream::wait(std::uint64_t copy) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ >= copy; });
}

void CopyStream::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
        if (waiting_.empty()) return;
        const Copy copy = waiting_.front();
        waiting_.pop_front();
        lock.unlock();
        if (copy.bytes > 0) std::memcpy(copy.to, copy.from, copy.bytes);
        lock.lock();
        ++done_;
        changed_.notify_all();
    }
}

}  // namespace zeroproof::reference
