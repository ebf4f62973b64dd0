// What a timeline keeps of the changes of a ledger.
#include "harness/train/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "memory/space.h"

namespace zeroproof::harness {
namespace {

using memory::Category;
using memory::Phase;

std::size_t of(const memory::BytesByCategory& bytes, Category category) {
    return bytes[static_cast<std::size_t>(category)];
}

// Catches a point of the state before the change, one of another phase, and a change without any.
TEST(Timeline, EachChangeIsAPoint) {
    Timeline timeline;
    memory::Space space("device");
    space.ledger().observe(&timeline);
    space.ledger().enter(Phase::forward);
    {
        const memory::Buffer first(space, Category::activation, memory::DType::fp32, 3);
        const memory::Buffer second(space, Category::buffer, memory::DType::fp16, 5);
        space.ledger().enter(Phase::backward);
    }
    const std::vector<TimelinePoint> points = timeline.take();
    const struct {
        Phase phase;
        std::size_t activation, buffer;
    } expected[] = {{Phase::forward, 0, 0},    {Phase::forward, 12, 0},  {Phase::forward, 12, 10},
                    {Phase::backward, 12, 10}, {Phase::backward, 12, 0}, {Phase::backward, 0, 0}};
    ASSERT_EQ(points.size(), std::size(expected));
    for (std::size_t i = 0; i < points.size(); ++i) {
        EXPECT_EQ(points[i].phase, expected[i].phase) << i;
        EXPECT_EQ(of(points[i].live_bytes, Category::activation), expected[i].activation) << i;
        EXPECT_EQ(of(points[i].live_bytes, Category::buffer), expected[i].buffer) << i;
        EXPECT_EQ(of(points[i].live_bytes, Category::parameter), 0u) << i;
    }
}

// Seconds count from the start, and never back.
TEST(Timeline, TimeGoesOn) {
    Timeline timeline;
    memory::Ledger ledger;
    ledger.observe(&timeline);
    timeline.start();
    for (int i = 0; i < 100; ++i) ledger.add(Category::buffer, 1);
    const std::vector<TimelinePoint> points = timeline.take();
    ASSERT_EQ(points.size(), 100u);
    EXPECT_GE(points.front().seconds, 0);
    EXPECT_TRUE(std::ranges::is_sorted(points, {}, &TimelinePoint::seconds));
}

}  // namespace
}  // namespace zeroproof::harness
