// The loss scale, by hand: s is a step taken, x a skipped one.
#include "reference/optimizer/loss_scale.h"

#include <gtest/gtest.h>

#include <string>

namespace zeroproof::reference {
namespace {

void play(LossScale& scale, const std::string& events) {
    for (const char event : events) event == 's' ? scale.step_taken() : scale.step_skipped();
}

TEST(LossScale, SequencesByHand) {
    const struct {
        LossScaleOptions options;
        std::string events;
        std::vector<float> values;  // after each
    } rows[] = {
        // growth after the interval and again
        {{8, 2, 2, 1, 1}, "sssss", {8, 16, 16, 32, 32}},
        // an overflow starts the interval anew
        {{8, 2, 3, 1, 1}, "ssxssss", {8, 8, 4, 4, 4, 8, 8}},
        // never below the minimum
        {{8, 4, 9, 1, 4}, "xxx", {4, 4, 4}},
        // hysteresis: the first overflow is free, those after it are not, until growth
        {{8, 2, 2, 2, 1}, "xxxssxx", {8, 4, 2, 2, 4, 4, 2}},
        // steps without growth do not restore it
        {{8, 2, 9, 2, 1}, "xsssx", {8, 8, 8, 8, 4}},
        {{64, 8, 1, 1, 1}, "sx", {512, 64}},
    };
    for (const auto& [options, events, values] : rows) {
        LossScale scale(Precision::fp16, options);
        EXPECT_EQ(scale.value(), options.initial);
        for (std::size_t i = 0; i < events.size(); ++i) {
            play(scale, events.substr(i, 1));
            EXPECT_EQ(scale.value(), values[i]) << events << " at " << i;
        }
    }
}

TEST(LossScale, IsOneInOtherTypesWhateverHappens) {
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
        LossScale scale(precision, {8, 2, 1, 1, 1});
        play(scale, "sxsx");
        EXPECT_EQ(scale.value(), 1);
        scale.restore({.value = 128});  // from a checkpoint of an fp16 run
        play(scale, "sxsx");
        EXPECT_EQ(scale.value(), 1);
    }
}

// FC38: a counter that a checkpoint drops.
TEST(LossScale, GoesOnFromARestoredStateAsIfItHadNeverStopped) {
    const LossScaleOptions options{64, 2, 3, 2, 1};
    const std::string events = "ssxssxsssxx";
    for (std::size_t cut = 0; cut <= events.size(); ++cut) {
        LossScale whole(Precision::fp16, options);
        LossScale first(Precision::fp16, options);
        LossScale second(Precision::fp16, options);
        play(whole, events);
        play(first, events.substr(0, cut));
        second.restore(first.state());
        play(second, events.substr(cut));
        EXPECT_EQ(second.value(), whole.value()) << cut;
        EXPECT_EQ(second.state().steps_since_overflow, whole.state().steps_since_overflow);
        EXPECT_EQ(second.state().overflows_left, whole.state().overflows_left);
    }
}

}  // namespace
}  // namespace zeroproof::reference
