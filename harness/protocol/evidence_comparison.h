// For tests: that two pieces of evidence are the same, field by field and bit by bit.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <tuple>
#include <vector>

#include "suites/conformance/evidence.h"

namespace zeroproof::harness {

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return std::ranges::equal(a, b, [](float x, float y) {
        return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
    });
}

// NaN is written as a text, without its bits.
inline bool same_number(double a, double b) {
    return a == b || (a != a && b != b);
}

inline void expect_same(const suites::Snapshot& a, const suites::Snapshot& b) {
    SCOPED_TRACE(testing::Message() << "snapshot after action " << a.action);
    EXPECT_TRUE(
        std::tie(a.action, a.kind, a.steps_taken, a.steps_skipped, a.skipped, a.live_bytes) ==
        std::tie(b.action, b.kind, b.steps_taken, b.steps_skipped, b.skipped, b.live_bytes));
    EXPECT_TRUE(same_number(a.loss_scale, b.loss_scale));
    EXPECT_TRUE(same_number(a.norm, b.norm)) << a.norm << " and " << b.norm;
    EXPECT_TRUE(same_number(a.clip_coefficient, b.clip_coefficient));
    EXPECT_TRUE(std::ranges::equal(a.weights, b.weights, same_bits));
    ASSERT_EQ(a.owned.size(), b.owned.size());
    for (std::size_t s = 0; s < a.owned.size(); ++s) {
        const suites::OwnedSlice& x = a.owned[s];
        const suites::OwnedSlice& y = b.owned[s];
        EXPECT_TRUE(std::tie(x.parameter, x.begin, x.elements) ==
                    std::tie(y.parameter, y.begin, y.elements));
        EXPECT_TRUE(same_bits(x.gradient, y.gradient));
        EXPECT_TRUE(same_bits(x.momentum, y.momentum));
        EXPECT_TRUE(same_bits(x.variance, y.variance));
        EXPECT_TRUE(same_bits(x.master, y.master));
    }
}

// But for the times of collectives, which are not handed over.
inline void expect_same(const suites::RankEvidence& a, const suites::RankEvidence& b) {
    ASSERT_EQ(a.snapshots.size(), b.snapshots.size());
    for (std::size_t s = 0; s < a.snapshots.size(); ++s)
        expect_same(a.snapshots[s], b.snapshots[s]);
    const auto all_same = [](const char* what, const auto& x, const auto& y, auto same) {
        ASSERT_EQ(x.size(), y.size()) << what;
        for (std::size_t i = 0; i < x.size(); ++i) EXPECT_TRUE(same(x[i], y[i])) << what << i;
    };
    all_same("echo ", a.echoes, b.echoes, [](const suites::Echo& x, const suites::Echo& y) {
        return std::tie(x.action, x.backward, x.unit, x.parameter) ==
                   std::tie(y.action, y.backward, y.unit, y.parameter) &&
               same_bits(x.weights, y.weights);
    });
    all_same("collective ", a.collectives, b.collectives,
             [](const collectives::CollectiveRecord& x, const collectives::CollectiveRecord& y) {
                 const auto fields = [](const collectives::CollectiveRecord& r) {
                     return std::tie(r.rank, r.sequence, r.group, r.op, r.in_elements,
                                     r.out_elements, r.type, r.reduction, r.peer, r.phase,
                                     r.traffic, r.awaited);
                 };
                 return fields(x) == fields(y);
             });
    EXPECT_EQ(a.collective_actions, b.collective_actions);
    all_same("in flight ", a.in_flight, b.in_flight,
             [](const suites::InFlight& x, const suites::InFlight& y) {
                 return std::tie(x.action, x.backward, x.unit, x.gradient, x.parameter) ==
                        std::tie(y.action, y.backward, y.unit, y.gradient, y.parameter);
             });
    all_same("race ", a.races, b.races, [](const collectives::Race& x, const collectives::Race& y) {
        return std::tie(x.kind, x.operation, x.number, x.element) ==
               std::tie(y.kind, y.operation, y.number, y.element);
    });
    EXPECT_EQ(a.races_watched, b.races_watched);
    EXPECT_EQ(a.peak_bytes, b.peak_bytes);
}

}  // namespace zeroproof::harness
