// How a world of ranks ends that cannot go on.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "collectives/test_support.h"

namespace zeroproof::collectives {
namespace {

using memory::Half;

void all_reduce_one(Communicator& group, DType type = DType::fp32) {
    std::array<std::byte, 8> value{};
    group.all_reduce(value.data(), value.data(), 1, type, Reduction::sum).wait();
}

struct Ending {
    std::unique_ptr<WorldFailure> failure;
    int ranks_told = 0;  // how many saw WorldFailed
};

Ending end_of(int ranks, const std::function<void(Communicator&)>& body,
              std::chrono::milliseconds timeout = kNever) {
    std::atomic<int> ranks_told = 0;
    ThreadWorld world(ranks, timeout);
    auto failure = world.run([&](Communicator& communicator) {
        try {
            body(communicator);
        } catch (const WorldFailed&) {
            ++ranks_told;
            // It has failed for good.
            EXPECT_THROW(all_reduce_one(communicator), WorldFailed);
            throw;
        }
    });
    return {std::move(failure), ranks_told};
}

void expect_failure(const Ending& ending, FailureKind kind, int ranks_told,
                    const std::vector<std::string>& parts) {
    ASSERT_NE(ending.failure, nullptr);
    EXPECT_EQ(ending.failure->kind, kind) << ending.failure->message;
    EXPECT_EQ(ending.ranks_told, ranks_told) << ending.failure->message;
    for (const std::string& part : parts)
        EXPECT_NE(ending.failure->message.find(part), std::string::npos)
            << "'" << part << "' is not in: " << ending.failure->message;
}

TEST(ThreadWorldFailure, AWorldThatEndsWellReportsNone) {
    EXPECT_EQ(end_of(3, [](Communicator& world) { all_reduce_one(world); }).failure, nullptr);
    EXPECT_EQ(end_of(1, [](Communicator&) {}).failure, nullptr);
}

TEST(ThreadWorldFailure, ARankThatThrowsIsNamedAndEndsTheOthers) {
    const Ending ending = end_of(4, [](Communicator& world) {
        all_reduce_one(world);
        if (world.rank() == 2) throw std::domain_error("no such weight");
        all_reduce_one(world);
    });
    expect_failure(ending, FailureKind::rank_threw, 3, {"rank 2 threw: no such weight"});
    EXPECT_THROW(std::rethrow_exception(ending.failure->rank_exception), std::domain_error);
}

TEST(ThreadWorldFailure, WhateverARankThrowsIsCaught) {
    const Ending ending = end_of(2, [](Communicator& world) {
        if (world.rank() == 1) throw 42;
        all_reduce_one(world);
    });
    expect_failure(ending, FailureKind::rank_threw, 1, {"rank 1 threw"});
    EXPECT_THROW(std::rethrow_exception(ending.failure->rank_exception), int);
}

TEST(ThreadWorldFailure, AnOperationAgainstTheRulesIsAnExceptionOfItsRank) {
    const Ending ending = end_of(2, [](Communicator& world) {
        std::array<float, 2> values{};
        if (world.rank() == 1)
            world.broadcast(bytes(values), 2, DType::fp32, 5).wait();
        else
            all_reduce_one(world);
    });
    expect_failure(ending, FailureKind::rank_threw, 1,
                   {"rank 1 threw: rank 1 of 2: broadcast of 2 fp32 to 2, root 5: no such peer"});
    EXPECT_THROW(std::rethrow_exception(ending.failure->rank_exception), BadOperation);
}

// A request that is destroyed as its rank throws waits for others, which may wait for this rank.
TEST(ThreadWorldFailure, AnExceptionIsKeptWhenItsUnwindingDeadlocks) {
    const Ending ending = end_of(2, [](Communicator& world) {
        const float value = 1;
        if (world.rank() == 1) all_reduce_one(world);
        const auto in_flight = world.start({Op::send, DType::fp32, Reduction::none,
                                            reinterpret_cast<const std::byte*>(&value), nullptr, 1,
                                            0, 1 - world.rank()});
        throw std::domain_error("no such weight");
    });
    expect_failure(
        ending, FailureKind::deadlock, 1,
        {"rank 0 waits for send of 1 fp32 to 0, peer 1",
         "rank 1 waits for all_reduce of 1 fp32 to 1, sum", "rank 0 threw: no such weight"});
    EXPECT_THROW(std::rethrow_exception(ending.failure->rank_exception), std::domain_error);
}

TEST(ThreadWorldFailure, RanksThatDisagreeAreNamedWithWhatTheyStarted) {
    std::array<std::byte, 64> memory[2];
    const Operation agreed{
        Op::all_reduce, DType::fp32, Reduction::sum, memory[0].data(), memory[0].data(), 4, 4, -1};
    const auto but = [&](auto&& change) {
        Operation operation = agreed;
        operation.input = operation.output = memory[1].data();
        change(operation);
        return operation;
    };
    const struct {
        Operation other;
        std::string text;
    } cases[] = {
        {but([](Operation& o) { o.type = DType::int32; }), "all_reduce of 4 int32 to 4, sum"},
        {but([](Operation& o) { o.reduction = Reduction::max; }), "all_reduce of 4 fp32 to 4, max"},
        {but([](Operation& o) { o.in_elements = o.out_elements = 5; }),
         "all_reduce of 5 fp32 to 5, sum"},
        {but([](Operation& o) {
             o.op = Op::all_gather;
             o.reduction = Reduction::none;
             o.in_elements = o.out_elements = 0;
         }),
         "all_gather of 0 fp32 to 0"},
        {but([](Operation& o) {
             o.op = Op::reduce;
             o.peer = 1;
         }),
         "reduce of 4 fp32 to 4, sum, root 1"},
    };
    for (const auto& c : cases) {
        const Ending ending = end_of(2, [&](Communicator& world) {
            all_reduce_one(world);
            world.start(world.rank() == 0 ? agreed : c.other).wait();
        });
        expect_failure(
            ending, FailureKind::disagreement, 2,
            {"operation 1 of ranks [0, 1]: ", "rank 0 started all_reduce of 4 fp32 to 4, sum",
             "rank 1 started " + c.text});
    }
}

TEST(ThreadWorldFailure, RootsAndPairsMustAgreeToo) {
    const Ending roots = end_of(2, [](Communicator& world) {
        float value = 0;
        world.broadcast(reinterpret_cast<std::byte*>(&value), 1, DType::fp32, world.rank()).wait();
    });
    expect_failure(roots, FailureKind::disagreement, 2, {"root 0", "root 1"});
    const Ending pair = end_of(3, [](Communicator& world) {
        std::array<std::byte, 16> memory{};
        const bool sends = world.rank() == 2;
        if (world.rank() == 1) return;
        world
            .start({sends ? Op::send : Op::receive, DType::fp32, Reduction::none, memory.data(),
                    memory.data(), sends ? 2u : 0u, sends ? 0u : 3u, sends ? 0 : 2})
            .wait();
    });
    expect_failure(pair, FailureKind::disagreement, 2,
                   {"operation 0 of ranks [2, 0]", "rank 2 started send of 2 fp32 to 0, peer 0",
                    "rank 0 started receive of 0 fp32 to 3, peer 2"});
}

// The time-out of these worlds is never reached.
TEST(ThreadWorldFailure, ARankThatEndsWithoutJoiningIsADeadlock) {
    const Ending ending = end_of(4, [](Communicator& world) {
        all_reduce_one(world);
        if (world.rank() == 3) return;
        all_reduce_one(world);
    });
    expect_failure(
        ending, FailureKind::deadlock, 3,
        {"rank 0 waits for all_reduce of 1 fp32 to 1, sum (operation 1 of ranks "
         "[0, 1, 2, 3]), not started by ranks [3]",
         "rank 1 waits for all_reduce", "rank 2 waits for all_reduce", "rank 3 has ended"});
    EXPECT_EQ(ending.failure->rank_exception, nullptr);
}

TEST(ThreadWorldFailure, RanksThatWaitForEachOtherAreADeadlock) {
    const Ending ending = end_of(3, [](Communicator& world) {
        float value = 0;
        // Each receives before anybody sends.
        world
            .start({Op::receive, DType::fp32, Reduction::none, nullptr,
                    reinterpret_cast<std::byte*>(&value), 0, 1, (world.rank() + 1) % 3})
            .wait();
    });
    expect_failure(ending, FailureKind::deadlock, 3,
                   {"rank 0 waits for receive of 0 fp32 to 1, peer 1 (operation 0 of ranks [1, 0])",
                    "not started by ranks [0]", "rank 2 waits for receive"});
}

TEST(ThreadWorldFailure, ASplitThatARankLeavesOutIsADeadlock) {
    const Ending ending = end_of(3, [](Communicator& world) {
        if (world.rank() != 1) world.split(0, 0);
    });
    expect_failure(ending, FailureKind::deadlock, 2, {"rank 1 has ended"});
}

TEST(ThreadWorldFailure, WhoWaitsLongerThanTheTimeOutSaysForWhom) {
    std::promise<void> promise;
    std::shared_future<void> told = promise.get_future();
    const Ending ending = end_of(
        2,
        [&](Communicator& world) {
            if (world.rank() == 1) {
                told.wait();  // computes for longer than the time-out
                all_reduce_one(world);
                return;
            }
            try {
                all_reduce_one(world);
            } catch (const WorldFailed&) {
                promise.set_value();
                throw;
            }
        },
        std::chrono::milliseconds(20));
    expect_failure(ending, FailureKind::timeout, 2,
                   {"rank 0 waited longer than 20 ms",
                    "rank 0 waits for all_reduce of 1 fp32 to 1, sum (operation 0 of ranks "
                    "[0, 1]), not started by ranks [1]",
                    "rank 1 computes"});
}

// Sanitizers watch: two ranks are amid operations on memory that goes as they end, and the third
// throws. Of three slices, one rank carries out the last while the other waits for it.
TEST(ThreadWorldFailure, NoOperationTouchesMemoryOfARankThatHasLeft) {
    constexpr std::size_t kCount = 3 * 128 * 1024;
    for (int run = 0; run < 20; ++run) {
        std::atomic<int> operations = 0;
        const Ending ending = end_of(3, [&](Communicator& world) {
            const auto pair = world.split(world.rank() / 2, 0);
            if (world.rank() == 2) {
                operations.wait(0);
                for (int i = 0; i < run * 10; ++i) std::this_thread::yield();
                throw std::runtime_error("leaves");
            }
            for (;; ++operations, operations.notify_one()) {
                std::vector<Half> heap(kCount);
                std::array<float, 1000> stack{};
                auto large =
                    pair->all_reduce(bytes(heap), bytes(heap), kCount, DType::fp16, Reduction::sum);
                const auto dropped = pair->all_reduce(bytes(stack), bytes(stack), stack.size(),
                                                      DType::fp32, Reduction::sum);
                large.wait();
            }
        });
        expect_failure(ending, FailureKind::rank_threw, 2, {"rank 2 threw: leaves"});
    }
}

TEST(ThreadWorldFailure, AWorldHasAtLeastOneRank) {
    EXPECT_THROW(ThreadWorld(0, kNever), std::invalid_argument);
}

}  // namespace
}  // namespace zeroproof::collectives
