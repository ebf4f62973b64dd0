// Copies between two memories, one after the other, while the thread that asks for them computes.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>

namespace zeroproof::reference {

class CopyStream {
  public:
    CopyStream();
    // Finishes all copies.
    ~CopyStream();
    CopyStream(const CopyStream&) = delete;
    CopyStream& operator=(const CopyStream&) = delete;

    // Names the copy. Until it is waited for, nobody writes `from`, and nobody reads or writes
    // `to`.
    std::uint64_t start(std::byte* to, const std::byte* from, std::size_t bytes);
    // Returns once this copy, and so every earlier one, is done.
    void wait(std::uint64_t copy);

  private:
    struct Copy {
        std::byte* to;
        const std::byte* from;
        std::size_t bytes;
    };
    void work();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Copy> waiting_;
    std::uint64_t started_ = 0;
    std::uint64_t done_ = 0;
    bool ending_ = false;
    std::thread thread_;  // last: it uses all of the above
};

}  // namespace zeroproof::reference
