// Copies beside the computation: what has arrived when, and that nothing is lost.
#include "reference/zero_r/copy_stream.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace zeroproof::reference {
namespace {

using Bytes = std::vector<std::byte>;

Bytes pattern(std::size_t count, int first) {
    Bytes bytes(count);
    for (std::size_t i = 0; i < count; ++i)
        bytes[i] = static_cast<std::byte>((static_cast<std::size_t>(first) + i * 7) & 0xFF);
    return bytes;
}

constexpr std::size_t kLarge = 1 << 20;  // takes a while

// Catches a wait that returns before the copy is done, and one that never does.
TEST(CopyStream, WhatWasWaitedForHasArrived) {
    CopyStream stream;
    for (int round = 0; round < 20; ++round) {
        const Bytes from = pattern(round % 2 == 0 ? kLarge : 3, round);
        Bytes to(from.size());
        stream.wait(stream.start(to.data(), from.data(), from.size()));
        EXPECT_EQ(to, from) << round;
    }
}

// Each copies on what the one before has brought. Catches copies that overtake one another.
TEST(CopyStream, CopiesAreMadeInTheirOrder) {
    CopyStream stream;
    std::vector<Bytes> chain(8, Bytes(kLarge));
    chain[0] = pattern(kLarge, 5);
    std::uint64_t last = 0;
    for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
        const std::uint64_t number = stream.start(chain[i + 1].data(), chain[i].data(), kLarge);
        EXPECT_GT(number, last);
        last = number;
    }
    stream.wait(last);
    EXPECT_EQ(chain.back(), chain.front());
}

// A wait for the last is one for all, and a second wait for any returns at once.
TEST(CopyStream, AnEarlierCopyIsDoneWithALaterOne) {
    CopyStream stream;
    const Bytes from = pattern(kLarge, 9);
    std::vector<Bytes> to(5, Bytes(kLarge));
    std::vector<std::uint64_t> numbers;
    for (Bytes& each : to) numbers.push_back(stream.start(each.data(), from.data(), kLarge));
    stream.wait(numbers.back());
    for (std::size_t i = 0; i < to.size(); ++i) {
        EXPECT_EQ(to[i], from) << i;
        stream.wait(numbers[i]);
    }
}

// No copy has the number 0: there is nothing to wait for.
TEST(CopyStream, WithoutACopyThereIsNothingToWaitFor) {
    CopyStream stream;
    stream.wait(0);
}

// The memory of a rank goes after its stream. Catches an end that drops what is still waiting.
TEST(CopyStream, ItsEndFinishesAllCopies) {
    const Bytes from = pattern(kLarge, 11);
    std::vector<Bytes> to(5, Bytes(kLarge));
    {
        CopyStream stream;
        for (Bytes& each : to) stream.start(each.data(), from.data(), kLarge);
    }
    for (const Bytes& each : to) EXPECT_EQ(each, from);
}

TEST(CopyStream, CopiesOfNothingAreDoneToo) {
    CopyStream stream;
    stream.wait(stream.start(nullptr, nullptr, 0));
}

// What a rank does while its copies travel: it writes elsewhere, waits, and uses both ends again.
// Under the thread sanitizer this catches a wait that does not order the two threads.
TEST(CopyStream, BothEndsAreFreeAfterAWait) {
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < 3; ++rank)
        ranks.emplace_back([rank] {
            CopyStream stream;
            Bytes device = pattern(4096, rank);
            Bytes host(device.size());
            for (int round = 0; round < 50; ++round) {
                const std::uint64_t out = stream.start(host.data(), device.data(), host.size());
                Bytes busy = pattern(4096, round);
                stream.wait(out);
                EXPECT_EQ(host, device);
                device = busy;
                const std::uint64_t back = stream.start(device.data(), host.data(), host.size());
                stream.wait(back);
                EXPECT_EQ(host, device);
                host.assign(host.size(), std::byte{0});
                device = pattern(4096, rank + round);
            }
        });
    for (std::thread& rank : ranks) rank.join();
}

}  // namespace
}  // namespace zeroproof::reference
