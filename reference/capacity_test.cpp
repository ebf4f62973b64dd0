// The largest model that trains on devices of a given size: what partitioning is for (ZeRO paper,
// figure 1 and table 2). Every device throws where it has too little memory; nothing is computed
// from formulas here.
#include <gtest/gtest.h>

#include <cmath>

#include "collectives/thread_world.h"
#include "memory/sanitizers.h"
#include "reference/models/dot.h"
#include "reference/trainer.h"

namespace zeroproof::reference {
namespace {

constexpr std::size_t kCapacityBytes = 1 << 16;
constexpr std::size_t kUnitElements =
    128;  // so that what one unit needs while it computes is little
constexpr int kRanks = 64;

class Ones : public LinearTerms {
  public:
    void initial_weights(std::size_t, std::size_t, std::span<float> values) const override {
        std::ranges::fill(values, 1.0f);
    }
    bool terms(std::size_t, std::size_t, std::span<float> g) const override {
        std::ranges::fill(g, 1.0f);
        return true;
    }
};

// Whether so many parameters train for a step. Any other failure than a lack of memory fails the
// test.
bool trains(int stage, std::size_t elements) {
    const Ones terms;
    std::vector<Parameter> parameters;
    std::vector<Unit> units;
    for (std::size_t done = 0; done < elements; done += kUnitElements) {
        units.push_back({"unit", {parameters.size()}});
        parameters.push_back({std::to_string(done), std::min(kUnitElements, elements - done)});
    }
    Options options;
    options.stage = stage;
    options.precision = Precision::bf16;
    options.groups.emplace_back();
    options.bucket_elements = kUnitElements;
    collectives::ThreadWorld world(kRanks, std::chrono::minutes(10));
    const auto failure = world.run([&](collectives::Communicator& all) {
        memory::Space space("a device", kCapacityBytes);
        const auto gradients = all.split(0, all.rank());
        const auto weights = all.split(0, all.rank());
        const auto control = all.split(0, all.rank());
        DotModel model(parameters, units, terms);
        Trainer trainer(model, options, {*gradients, *weights, *control}, space);
        trainer.forward();
        trainer.backward();
        trainer.step();
    });
    if (failure == nullptr) return true;
    EXPECT_THROW(std::rethrow_exception(failure->rank_exception), memory::OutOfMemory);
    return false;
}

// By doubling, then by halving the interval, to 2 %.
std::size_t largest_that_trains(int stage) {
    std::size_t fits = kUnitElements;
    while (trains(stage, 2 * fits)) fits *= 2;
    std::size_t fails = 2 * fits;
    while (fails - fits > fits / 50) {
        const std::size_t middle = fits + (fails - fits) / 2;
        (trains(stage, middle) ? fits : fails) = middle;
    }
    return fits;
}

// 16 : 4 + 12/64 : 2 + 14/64 : 16/64 bytes a parameter are 1 : 3.82 : 7.21 : 64, less what a unit
// and its buckets need.
TEST(Capacity, LargestModelsAreInTheRatiosOfThePaper) {
    if (memory::kThreadSanitizer || memory::kAddressSanitizer)
        GTEST_SKIP() << "64 threads, some forty times: minutes under a sanitizer";
    const auto plain = static_cast<double>(largest_that_trains(0));
    EXPECT_NEAR(plain, kCapacityBytes / 16.0, 0.03 * plain);
    const double expected[] = {1, 3.8, 7.2, 64};
    for (int stage = 1; stage <= 3; ++stage) {
        const double ratio = static_cast<double>(largest_that_trains(stage)) / plain;
        EXPECT_NEAR(ratio, expected[stage], 0.05 * expected[stage]) << "stage " << stage;
    }
}

}  // namespace
}  // namespace zeroproof::reference
