#include "collectives/adversarial.h"

#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "collectives/test_support.h"
#include "memory/space.h"

namespace zeroproof::collectives {
namespace {

using memory::Buffer;
using memory::Category;
using memory::Returned;
using memory::Space;

using Body = std::function<void(Communicator&)>;

// What each rank's adversarial communicator wrote down while `body` ran on it.
std::vector<std::vector<Race>> races_of(int ranks, const Body& body) {
    std::vector<std::vector<Race>> races(static_cast<std::size_t>(ranks));
    run_ranks(ranks, [&](Communicator& world) {
        AdversarialCommunicator adversarial(std::make_unique<Borrowed>(world), 42,
                                            races[static_cast<std::size_t>(world.rank())]);
        body(adversarial);
    });
    return races;
}

struct Seen {
    RaceKind kind;
    std::uint64_t number;
    std::size_t element;
};

// Rank 1 alone raced, in this way.
void expect_race(const std::vector<std::vector<Race>>& races, const std::string& operation,
                 const std::vector<Seen>& expected) {
    for (std::size_t rank = 0; rank < races.size(); ++rank)
        ASSERT_EQ(races[rank].size(), rank == 1 ? expected.size() : 0) << "rank " << rank;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const Race& race = races[1][i];
        EXPECT_EQ(race.kind, expected[i].kind) << name_of(race.kind);
        EXPECT_EQ(race.number, expected[i].number);
        EXPECT_EQ(race.element, expected[i].element);
        EXPECT_EQ(race.operation, operation);
    }
}

// A sum of four floats per rank out of place, with something done on rank 1 before the wait.
std::vector<std::vector<Race>> races_of_sum(const std::function<void(float*, float*)>& touch) {
    return races_of(2, [&](Communicator& world) {
        std::array<float, 4> first{};
        world.all_reduce(bytes(first), bytes(first), 4, DType::fp32, Reduction::sum).wait();
        std::array<float, 4> in{1, 2, 3, 4};
        std::array<float, 4> out{};
        auto request =
            world.all_reduce(bytes(std::as_const(in)), bytes(out), 4, DType::fp32, Reduction::sum);
        if (world.rank() == 1) touch(in.data(), out.data());
        request.wait();
        // The operation had copies: whatever was touched, results are those of the start.
        EXPECT_EQ(out, (std::array<float, 4>{2, 4, 6, 8}));
    });
}

const std::string kSumOfFour = "all_reduce of 4 fp32 to 4, sum";

TEST(Adversarial, AnInputWrittenInFlightIsARace) {
    expect_race(races_of_sum([](float* in, float*) { in[2] = 9; }), kSumOfFour,
                {{RaceKind::input_touched, 1, 2}});
}

TEST(Adversarial, AnOutputWrittenInFlightIsARace) {
    expect_race(races_of_sum([](float*, float* out) { out[3] = 0; }), kSumOfFour,
                {{RaceKind::output_touched, 1, 3}});
}

TEST(Adversarial, BothAtOnceAreTwoRaces) {
    const auto touch = [](float* in, float* out) { in[0] = out[1] = 5; };
    expect_race(races_of_sum(touch), kSumOfFour,
                {{RaceKind::input_touched, 1, 0}, {RaceKind::output_touched, 1, 1}});
}

TEST(Adversarial, AnOutputReadInFlightIsNaN) {
    expect_race(races_of_sum([](float*, float* out) {
                    for (int i = 0; i < 4; ++i) EXPECT_TRUE(std::isnan(out[i]));
                }),
                kSumOfFour, {});
}

TEST(Adversarial, AnInputFreedInFlightIsARace) {
    const auto races = races_of(2, [](Communicator& world) {
        Space space("device", Space::kUnlimited, Returned::quarantined);
        Buffer out(space, Category::gradient, DType::fp16, 5);
        std::optional<Buffer> in(std::in_place, space, Category::gradient, DType::fp16, 10);
        in->fill_zero();
        auto request =
            world.reduce_scatter(in->data(), out.data(), 5, DType::fp16, Reduction::mean);
        if (world.rank() == 1) in.reset();
        request.wait();
        EXPECT_EQ(memory::load_element(DType::fp16, out.data(), 4), 0);
    });
    expect_race(races, "reduce_scatter of 10 fp16 to 5, mean", {{RaceKind::input_touched, 0, 0}});
}

TEST(Adversarial, ARequestThatNobodyWaitsForIsARaceAndLeavesPoison) {
    const auto races = races_of(2, [](Communicator& world) {
        std::array<float, 1> in{1};
        std::array<float, 2> out{};
        {
            auto request = world.all_gather(bytes(in), bytes(out), 1, DType::fp32);
            if (world.rank() != 1) request.wait();
        }
        EXPECT_EQ(std::isnan(out[0]), world.rank() == 1);
    });
    expect_race(races, "all_gather of 1 fp32 to 2", {{RaceKind::not_awaited, 0, 0}});
}

// Poison lies where the output is, in place too, so that what is written there shows.
TEST(Adversarial, InPlaceASharedElementIsInputAndOutput) {
    const auto races = races_of(2, [](Communicator& world) {
        std::array<float, 2> values{1, 2};
        auto request =
            world.all_reduce(bytes(values), bytes(values), 2, DType::fp32, Reduction::sum);
        EXPECT_TRUE(std::isnan(values[0]));
        if (world.rank() == 1) values[1] = 0;
        request.wait();
        EXPECT_EQ(values, (std::array<float, 2>{2, 4}));
    });
    expect_race(races, "all_reduce of 2 fp32 to 2, sum",
                {{RaceKind::input_touched, 0, 1}, {RaceKind::output_touched, 0, 1}});
}

TEST(Adversarial, ABroadcastHasItsInputOnTheRootAloneAndItsOutputElsewhere) {
    const auto races = races_of(2, [](Communicator& world) {
        const bool is_root = world.rank() == 0;
        std::array<float, 2> values{1, 2};
        auto request = world.broadcast(bytes(values), 2, DType::fp32, 0);
        EXPECT_EQ(std::isnan(values[0]), !is_root);
        request.wait();
        EXPECT_EQ(values, (std::array<float, 2>{1, 2}));

        // Out of place, the root gets a copy, and others may do what they like with their input.
        std::array<float, 2> copy{};
        auto request_copy = world.start({Op::broadcast, DType::fp32, Reduction::none,
                                         bytes(std::as_const(values)), bytes(copy), 2, 2, 0});
        if (!is_root) values = {8, 9};
        EXPECT_TRUE(std::isnan(copy[1]));
        request_copy.wait();
        EXPECT_EQ(copy, (std::array<float, 2>{1, 2}));

        auto request_touched = world.broadcast(bytes(values), 2, DType::fp32, 0);
        if (!is_root) values[1] = 3;
        request_touched.wait();
    });
    expect_race(races, "broadcast of 2 fp32 to 2, root 0", {{RaceKind::output_touched, 2, 1}});
}

TEST(Adversarial, SendAndReceiveHaveOneSideEach) {
    const auto races = races_of(2, [](Communicator& world) {
        std::array<float, 2> values{1, 2};
        const bool sends = world.rank() == 0;
        auto request = world.start({sends ? Op::send : Op::receive, DType::fp32, Reduction::none,
                                    sends ? bytes(std::as_const(values)) : nullptr,
                                    sends ? nullptr : bytes(values), sends ? 2u : 0u,
                                    sends ? 0u : 2u, 1 - world.rank()});
        if (!sends) {
            EXPECT_TRUE(std::isnan(values[0]));
            values[0] = 4;
        }
        request.wait();
        EXPECT_EQ(values, (std::array<float, 2>{1, 2}));
    });
    expect_race(races, "receive of 0 fp32 to 2, peer 0", {{RaceKind::output_touched, 0, 0}});
}

// Everything that training uses, in and out of place, several in flight, groups of groups.
std::vector<float> correct_use(Communicator& world) {
    const auto group = world.split(world.rank() % 2, 0);
    const auto n = static_cast<std::size_t>(group->size());
    const auto rank = static_cast<std::size_t>(group->rank());
    std::vector<float> results;
    std::vector<float> gradients(6 * n);
    for (std::size_t i = 0; i < gradients.size(); ++i)
        gradients[i] = 1.0f / static_cast<float>(i + 1 + static_cast<std::size_t>(world.rank()));
    std::vector<float> weights(3 * n);
    std::vector<float> averaged(3 * n);
    std::vector<float> shard(3, static_cast<float>(rank));
    auto scattered = group->reduce_scatter(bytes(gradients), bytes(gradients) + rank * 24, 6,
                                           DType::fp32, Reduction::mean);
    auto gathered = group->all_gather(bytes(shard), bytes(weights), 3, DType::fp32);
    gathered.wait();
    auto reduced = world.all_reduce(bytes(weights), bytes(averaged), weights.size(), DType::fp32,
                                    Reduction::mean);
    reduced.wait();
    scattered.wait();
    group->all_gather(bytes(gradients) + rank * 24, bytes(gradients), 6, DType::fp32).wait();
    world.broadcast(bytes(shard), 3, DType::fp32, 3).wait();
    for (const auto* part : {&gradients, &weights, &averaged, &shard})
        results.insert(results.end(), part->begin(), part->end());
    return results;
}

TEST(Adversarial, ACorrectUserSeesNoRaceAndTheSameResults) {
    std::vector<std::vector<float>> plain(6);
    run_ranks(6, [&](Communicator& world) {
        plain[static_cast<std::size_t>(world.rank())] = correct_use(world);
    });
    const auto races = races_of(6, [&](Communicator& world) {
        for (int step = 0; step < 10; ++step)
            EXPECT_EQ(correct_use(world), plain[static_cast<std::size_t>(world.rank())]);
    });
    for (const auto& of_rank : races) EXPECT_TRUE(of_rank.empty());
}

TEST(Adversarial, AnOperationAgainstTheRulesIsRejectedBeforeItPoisonsAnything) {
    run_ranks(1, [](Communicator& world) {
        std::vector<Race> races;
        AdversarialCommunicator adversarial(std::make_unique<Borrowed>(world), 1, races);
        std::array<float, 2> values{1, 2};
        EXPECT_THROW(std::ignore = adversarial.all_reduce(bytes(values), bytes(values), 2,
                                                          DType::fp32, Reduction::none),
                     BadOperation);
        EXPECT_EQ(values, (std::array<float, 2>{1, 2}));
        EXPECT_TRUE(races.empty());
    });
}

}  // namespace
}  // namespace zeroproof::collectives
