#include "memory/space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace zeroproof::memory {
namespace {

bool all_poison(const std::byte* data, std::size_t bytes) {
    return std::all_of(data, data + bytes, [](std::byte byte) { return byte == kPoison; });
}

TEST(Space, ABufferIsAlignedPoisonedAndAccountedForWhileItLives) {
    Space space("device 0");
    EXPECT_EQ(space.name(), "device 0");
    EXPECT_EQ(space.capacity_bytes(), Space::kUnlimited);
    for (const DType type : kAllDTypes) {
        Buffer buffer(space, Category::gradient, type, 13);
        EXPECT_EQ(buffer.type(), type);
        EXPECT_EQ(buffer.elements(), 13u);
        EXPECT_EQ(buffer.size_bytes(), 13 * size_of(type));
        EXPECT_FALSE(buffer.empty());
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0u);
        EXPECT_TRUE(all_poison(buffer.data(), buffer.size_bytes()));
        EXPECT_EQ(buffer.at(13), buffer.data() + buffer.size_bytes());
        EXPECT_EQ(std::as_const(buffer).at(2), buffer.data() + 2 * size_of(type));
        const double poison = load_element(type, buffer.data(), 12);
        EXPECT_TRUE(is_floating(type) ? std::isnan(poison) : poison == -1) << name_of(type);
        EXPECT_EQ(space.ledger().live_bytes(Category::gradient), buffer.size_bytes());
        buffer.fill_zero();
        EXPECT_EQ(load_element(type, buffer.data(), 12), 0);
    }
    EXPECT_EQ(space.ledger().live_bytes(), 0u);
    EXPECT_EQ(space.ledger().peak_bytes(Category::gradient), 13 * sizeof(double));
}

TEST(Space, QuarantinedStorageIsPoisonedWhenReturnedAndNeverHandedOutAgain) {
    Space space("device 0", 64, Returned::quarantined);
    std::vector<const std::byte*> returned;
    for (int round = 0; round < 20; ++round) {
        // Two at once: both must find room in the quarantine.
        Buffer first(space, Category::buffer, DType::fp32, 8);
        Buffer second(space, Category::buffer, DType::fp32, 8);
        first.fill_zero();
        second.fill_zero();
        for (const Buffer* buffer : {&first, &second}) {
            EXPECT_EQ(std::count(returned.begin(), returned.end(), buffer->data()), 0);
            returned.push_back(buffer->data());
        }
    }
    for (const std::byte* data : returned) EXPECT_TRUE(all_poison(data, 32));
    // What is in quarantine is not live: it counts against no capacity.
    EXPECT_EQ(space.ledger().live_bytes(), 0u);
    EXPECT_EQ(space.ledger().peak_bytes(), 64u);
}

TEST(Space, BeyondTheCapacityATakeFailsNamingEverythingAndChangesNothing) {
    Space space("host of rank 3", 100);
    space.ledger().enter(Phase::forward);
    Buffer held(space, Category::parameter, DType::fp32, 20);
    try {
        Buffer refused(space, Category::activation, DType::fp16, 11);
        FAIL() << "accepted";
    } catch (const OutOfMemory& error) {
        EXPECT_STREQ(error.what(),
                     "out of memory in host of rank 3: 22 bytes asked for as activation in phase "
                     "forward, 80 of 100 bytes are live");
    }
    EXPECT_EQ(space.ledger().live_bytes(), 80u);
    EXPECT_EQ(space.ledger().peak_bytes(), 80u);
    Buffer fits(space, Category::activation, DType::fp16, 10);
    EXPECT_EQ(space.ledger().live_bytes(), 100u);
    EXPECT_THROW(Buffer(space, Category::activation, DType::int8, 1), OutOfMemory);
}

TEST(Space, ACountWhoseBytesExceedAnyAddressIsOutOfMemory) {
    Space space("device 0");
    EXPECT_THROW(Buffer(space, Category::buffer, DType::fp64, Space::kUnlimited / 8 + 1),
                 OutOfMemory);
    EXPECT_EQ(space.ledger().live_bytes(), 0u);
}

TEST(Space, AnExceptionReturnsWhatWasTaken) {
    Space space("device 0", 64);
    const auto take_too_much = [&] {
        const Buffer first(space, Category::master, DType::fp32, 12);
        const Buffer second(space, Category::momentum, DType::fp32, 12);
    };
    EXPECT_THROW(take_too_much(), OutOfMemory);
    EXPECT_EQ(space.ledger().live_bytes(), 0u);
    EXPECT_EQ(space.ledger().peak_bytes(), 48u);
}

TEST(Buffer, WithoutElementsHoldsNothing) {
    Space space("device 0", 0);
    Buffer none(space, Category::buffer, DType::bf16, 0);
    Buffer nowhere;
    for (Buffer* buffer : {&none, &nowhere}) {
        EXPECT_TRUE(buffer->empty());
        EXPECT_EQ(buffer->size_bytes(), 0u);
        EXPECT_EQ(buffer->data(), nullptr);
        buffer->fill_zero();
    }
    EXPECT_EQ(none.type(), DType::bf16);
    EXPECT_TRUE(nowhere.floats().empty());
    EXPECT_EQ(space.ledger().peak_bytes(), 0u);
}

TEST(Buffer, MovesItsStorageAndReturnsItOnce) {
    Space space("device 0");
    Buffer first(space, Category::variance, DType::fp32, 4);
    const std::byte* const data = first.data();
    first.floats()[3] = 7;

    Buffer second(std::move(first));
    EXPECT_EQ(second.data(), data);
    EXPECT_EQ(second.floats()[3], 7);
    EXPECT_TRUE(first.empty());  // NOLINT(bugprone-use-after-move): it is empty by contract
    EXPECT_EQ(first.data(), nullptr);
    EXPECT_EQ(space.ledger().live_bytes(), 16u);

    Buffer third(space, Category::parameter, DType::int8, 100);
    third = std::move(second);  // returns the bytes that it held
    EXPECT_EQ(third.data(), data);
    EXPECT_EQ(third.type(), DType::fp32);
    EXPECT_EQ(space.ledger().live_bytes(Category::parameter), 0u);
    EXPECT_EQ(space.ledger().live_bytes(Category::variance), 16u);

    Buffer& itself = third;
    third = std::move(itself);
    EXPECT_EQ(third.data(), data);
    EXPECT_EQ(space.ledger().live_bytes(), 16u);
    third = Buffer();
    EXPECT_EQ(space.ledger().live_bytes(), 0u);
}

TEST(Buffer, OfAnotherTypeIsNotReadAsFloats) {
    Space space("device 0");
    Buffer buffer(space, Category::buffer, DType::fp16, 2);
    EXPECT_THROW(buffer.floats(), std::logic_error);
    EXPECT_THROW(std::as_const(buffer).floats(), std::logic_error);
}

}  // namespace
}  // namespace zeroproof::memory
