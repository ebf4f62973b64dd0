// How jobs end that cannot go on. The tests start them and are no ranks themselves.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <thread>

#include "collectives/mpi/mpi_test.h"

namespace zeroproof::collectives {

namespace {

constexpr std::chrono::milliseconds kTimeout{1500};
constexpr int kAborted = 7;

void all_reduce_one(Communicator& group) {
    float value = 1;
    auto* const data = reinterpret_cast<std::byte*>(&value);
    group.all_reduce(data, data, 1, DType::fp32, Reduction::sum).wait();
}

[[noreturn]] void sleep_for_ever() {
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

void play(const std::string& name, MpiWorld& mpi) {
    Communicator& world = mpi.world();
    const bool is_last = world.rank() == world.size() - 1;
    if (name == "completes") return all_reduce_one(world);
    if (name == "exits early") {
        if (is_last) _exit(3);
        return all_reduce_one(world);
    }
    if (name == "never starts") {
        if (is_last) sleep_for_ever();
        return all_reduce_one(world);
    }
    if (name == "never splits") {
        if (is_last) sleep_for_ever();
        (void)world.split(0, 0);
        return;
    }
    if (name == "throws") {
        const auto apart = mpi.duplicate(std::chrono::hours(1));
        // Its request ends while it throws, and nobody else starts such a one.
        std::array<float, 3> weights{};
        const Request pending =
            is_last
                ? world.broadcast(reinterpret_cast<std::byte*>(weights.data()), 3, DType::fp32, 0)
                : Request();
        if (is_last) throw std::runtime_error("no such weight");
        if (world.rank() == 0) all_reduce_one(*apart);
        sleep_for_ever();
    }
    if (name == "sends too little") {
        std::array<float, 3> values{};
        auto* const data = reinterpret_cast<std::byte*>(values.data());
        if (is_last)
            world.start({Op::send, DType::fp32, Reduction::none, data, nullptr, 2, 0, 0}).wait();
        if (world.rank() == 0)
            world
                .start({Op::receive, DType::fp32, Reduction::none, nullptr, data, 0, 3,
                        world.size() - 1})
                .wait();
        sleep_for_ever();
    }
    if (name == "sends too much") {
        std::array<float, 3> values{};
        auto* const data = reinterpret_cast<std::byte*>(values.data());
        if (is_last)
            world.start({Op::send, DType::fp32, Reduction::none, data, nullptr, 3, 0, 0}).wait();
        if (world.rank() == 0)
            world
                .start({Op::receive, DType::fp32, Reduction::none, nullptr, data, 0, 2,
                        world.size() - 1})
                .wait();
        sleep_for_ever();
    }
    throw std::logic_error("no such scenario");
}

struct Ending {
    int code;
    std::string output;
    double seconds;
};

Ending end_of(const std::string& scenario) {
    const auto began = std::chrono::steady_clock::now();
    FILE* const pipe = popen(fmt::format("{} {} 3 {} --scenario '{}' 2>&1", ZEROPROOF_MPIEXEC,
                                         ZEROPROOF_MPIEXEC_RANKS, ZEROPROOF_MPI_TEST, scenario)
                                 .c_str(),
                             "r");
    if (pipe == nullptr) return {-1, "cannot start a shell", 0};
    std::string output;
    std::array<char, 4096> block;
    for (std::size_t n; (n = fread(block.data(), 1, block.size(), pipe)) > 0;)
        output.append(block.data(), n);
    const int status = pclose(pipe);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output,
            std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count()};
}

void expect_failure(const std::string& scenario, const std::string& message) {
    const Ending ending = end_of(scenario);
    EXPECT_NE(ending.code, 0) << ending.output;
    EXPECT_NE(ending.output.find(message), std::string::npos)
        << "'" << message << "' is not in: " << ending.output;
}

TEST(MpiFailures, AJobThatEndsWellEndsWithZero) {
    const Ending ending = end_of("completes");
    EXPECT_EQ(ending.code, 0) << ending.output;
}

// mpirun itself ends the others.
TEST(MpiFailures, ARankThatExitsEarlyEndsTheJob) {
    EXPECT_NE(end_of("exits early").code, 0);
}

TEST(MpiFailures, AWaitForARankThatNeverStartsTimesOut) {
    const Ending ending = end_of("never starts");
    EXPECT_EQ(ending.code, kAborted) << ending.output;
    EXPECT_NE(ending.output.find("waited 1500 ms for all_reduce of 1 fp32 to 1, sum: a rank has "
                                 "died, or never started it"),
              std::string::npos)
        << ending.output;
}

TEST(MpiFailures, ASplitTimesOutAsWell) {
    expect_failure("never splits", "waited 1500 ms for all_gather of 2 int32");
}

TEST(MpiFailures, WhoWaitsIsToldWhyARankThrew) {
    expect_failure("throws", "rank 0 ended: rank 2: no such weight");
}

TEST(MpiFailures, MessagesOfAnotherLengthAreRefused) {
    expect_failure("sends too little", "rank 0: receive of 0 fp32 to 3, peer 2: 2 were sent");
    expect_failure("sends too much",
                   "rank 0: receive of 0 fp32 to 2, peer 2 failed: MPI_ERR_TRUNC");
}

}  // namespace

int run_scenario(const std::string& name) {
    MpiWorld mpi(kTimeout);
    const int rank = mpi.world().rank();
    try {
        play(name, mpi);
        return 0;
    } catch (const std::exception& error) {
        fmt::print("rank {} ended: {}\n", rank, error.what());
        std::fflush(stdout);
        mpi.announce_failure(error.what());
    }
    // Time for the others to end with a message of their own.
    std::this_thread::sleep_for(std::chrono::milliseconds(500) +
                                (rank > 0 ? kTimeout : 0 * kTimeout));
    mpi.abort(kAborted);
}

}  // namespace zeroproof::collectives
