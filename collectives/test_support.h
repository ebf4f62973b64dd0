// What the tests of this layer share.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <span>

#include "collectives/thread_world.h"

namespace zeroproof::collectives {

// Longer than any test may last: who gets here hangs.
inline constexpr std::chrono::hours kNever{1};

// Runs `body` on each of `ranks`. A failure of the world fails the test.
inline void run_ranks(int ranks, const std::function<void(Communicator&)>& body) {
    ThreadWorld world(ranks, kNever);
    const auto failure = world.run(body);
    EXPECT_EQ(failure, nullptr) << failure->message;
}

template <typename T>
const std::byte* bytes(const T& values) {
    return reinterpret_cast<const std::byte*>(values.data());
}
template <typename T>
std::byte* bytes(T& values) {
    return reinterpret_cast<std::byte*>(values.data());
}

// Forwards, so that a test can put the rank's world under a decorator that owns what it decorates.
class Borrowed : public Communicator {
  public:
    explicit Borrowed(Communicator& inner) : inner_(inner) {}
    int rank() const override { return inner_.rank(); }
    std::span<const int> world_ranks() const override { return inner_.world_ranks(); }
    Request start(const Operation& operation) override { return inner_.start(operation); }
    std::unique_ptr<Communicator> split(int color, int key) override {
        return inner_.split(color, key);
    }

  private:
    Communicator& inner_;
};

}  // namespace zeroproof::collectives
