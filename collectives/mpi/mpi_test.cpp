// Every operation of the MPI backend against its definition. Each rank checks what it got itself,
// and none leaves a test early, lest the others wait for it.
#include "collectives/mpi/mpi_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "collectives/operation_cases.h"
#include "collectives/reduce.h"

namespace zeroproof::collectives {
namespace {

std::string to_text(const OperationCase& c) {
    return std::string(name_of(c.op)) + " " + std::string(memory::name_of(c.type)) + " " +
           std::string(name_of(c.reduction)) + " of " + std::to_string(c.count) + ", root " +
           std::to_string(c.root) + (c.in_place ? ", in place" : "") +
           (c.aligned ? ", aligned" : "");
}

// Small whole numbers for floats, so that sums are exact in any order; integers over their range.
void fill(DType type, std::byte* data, std::size_t elements, int rank) {
    const std::size_t width = memory::size_of(type);
    for (std::size_t i = 0; i < elements; ++i) {
        const std::uint64_t mixed =
            (i + 1) * 0x9E3779B97F4A7C15u + static_cast<std::uint64_t>(rank) * 0xBF58476D1CE4E5B9u;
        if (memory::is_floating(type))
            memory::store_element(type, data, i, static_cast<double>(mixed >> 60) - 8);
        else
            std::memcpy(data + i * width, &mixed, width);
    }
}

RankMemory make_memory(const OperationCase& c, int ranks, int rank) {
    RankMemory memory = lay_out(c, ranks, rank);
    fill(c.type, memory.bytes.data() + memory.input, memory.in_elements, rank);
    return memory;
}

// What all memory of `rank` holds afterwards.
std::vector<std::byte> expected(const OperationCase& c, const std::vector<RankMemory>& before,
                                std::size_t rank) {
    std::vector<std::byte> after = before[rank].bytes;
    const std::size_t block = c.count * memory::size_of(c.type);
    std::byte* const output = after.data() + before[rank].output;
    const auto input = [&](std::size_t source) {
        return before[source].bytes.data() + before[source].input;
    };
    if (before[rank].out_elements == 0) return after;
    if (c.op == Op::broadcast) std::memcpy(output, input(static_cast<std::size_t>(c.root)), block);
    for (std::size_t source = 0; source < before.size(); ++source) {
        if (c.op == Op::all_gather) std::memcpy(output + source * block, input(source), block);
        if (c.op == Op::all_to_all)
            std::memcpy(output + source * block, input(source) + rank * block, block);
    }
    if (c.reduction == Reduction::none) return after;
    std::vector<const std::byte*> inputs;
    for (std::size_t source = 0; source < before.size(); ++source)
        inputs.push_back(input(source) + (c.op == Op::reduce_scatter ? rank * block : 0));
    reduce_elements(c.type, c.reduction, inputs, std::span(&output, 1), c.count);
    return after;
}

// Starts all of them before the first wait. Ranks wait in different orders.
void check_values(Communicator& group, const std::vector<OperationCase>& cases) {
    std::vector<RankMemory> mine;
    std::vector<std::vector<std::byte>> wanted;
    for (const OperationCase& c : cases) {
        std::vector<RankMemory> all;
        for (int rank = 0; rank < group.size(); ++rank)
            all.push_back(make_memory(c, group.size(), rank));
        const auto rank = static_cast<std::size_t>(group.rank());
        wanted.push_back(expected(c, all, rank));
        mine.push_back(std::move(all[rank]));
    }
    std::vector<Request> requests;
    for (std::size_t i = 0; i < cases.size(); ++i)
        requests.push_back(group.start(operation_of(cases[i], mine[i])));
    if (group.rank() % 2 == 1) std::ranges::reverse(requests);
    for (Request& request : requests) request.wait();
    for (std::size_t i = 0; i < cases.size(); ++i)
        EXPECT_TRUE(mine[i].bytes == wanted[i])
            << to_text(cases[i]) << ": rank " << group.rank() << " of " << group.size();
}

template <typename T>
const std::byte* bytes(const T& values) {
    return reinterpret_cast<const std::byte*>(values.data());
}
template <typename T>
std::byte* bytes(T& values) {
    return reinterpret_cast<std::byte*>(values.data());
}

TEST(Mpi, EveryOperationDoesWhatItsDefinitionSays) {
    Communicator& world = mpi_world().world();
    for (const DType type : memory::kAllDTypes)
        for (const std::size_t count : {0, 1, 15, 97, 5003})
            check_values(world, operation_cases(type, count, world.size()));
}

TEST(Mpi, WorldKnowsItsRanksAndItsLibrary) {
    EXPECT_TRUE(MpiWorld::is_built_in());
    EXPECT_FALSE(MpiWorld::library().empty());
    Communicator& world = mpi_world().world();
    if (world.size() > 1) {
        EXPECT_TRUE(MpiWorld::was_launched());
    }
    EXPECT_GE(mpi_world().ranks_on_this_node(), 1);
    EXPECT_LE(mpi_world().ranks_on_this_node(), world.size());
    for (int rank = 0; rank < world.size(); ++rank)
        EXPECT_EQ(world.world_ranks()[static_cast<std::size_t>(rank)], rank);
}

TEST(Mpi, SplitsByColourAndRanksByKey) {
    Communicator& world = mpi_world().world();
    const int color = world.rank() % 2;
    const auto half = world.split(color, -world.rank());  // last becomes first
    ASSERT_NE(half, nullptr);
    std::vector<int> members;
    for (int rank = world.size() - 1; rank >= 0; --rank)
        if (rank % 2 == color) members.push_back(rank);
    EXPECT_TRUE(std::ranges::equal(half->world_ranks(), members));
    EXPECT_EQ(members[static_cast<std::size_t>(half->rank())], world.rank());
    check_values(*half, operation_cases(DType::fp32, 7, half->size()));

    const auto first = world.split(world.rank() == 0 ? 0 : -1, 0);
    EXPECT_EQ(first != nullptr, world.rank() == 0);
    const auto again = half->split(0, half->rank());
    EXPECT_TRUE(std::ranges::equal(again->world_ranks(), members));
}

TEST(Mpi, DuplicateCarriesItsOwnOperations) {
    Communicator& world = mpi_world().world();
    const auto other = mpi_world().duplicate(std::chrono::seconds(10));
    std::vector<std::int32_t> one{1};
    std::vector<std::int32_t> two{2};
    const bool is_odd = world.rank() % 2 == 1;  // starts them the other way round
    Request first = is_odd
                        ? other->all_reduce(bytes(two), bytes(two), 1, DType::int32, Reduction::sum)
                        : world.all_reduce(bytes(one), bytes(one), 1, DType::int32, Reduction::sum);
    Request second =
        is_odd ? world.all_reduce(bytes(one), bytes(one), 1, DType::int32, Reduction::sum)
               : other->all_reduce(bytes(two), bytes(two), 1, DType::int32, Reduction::sum);
    second.wait();
    first.wait();
    EXPECT_EQ(one[0], world.size());
    EXPECT_EQ(two[0], 2 * world.size());
}

TEST(Mpi, SendsAndReceivesAreMatchedInTheOrderOfTheirPair) {
    Communicator& world = mpi_world().world();
    if (world.size() == 1) return;
    const int next = (world.rank() + 1) % world.size();
    const int previous = (world.rank() + world.size() - 1) % world.size();
    for (const std::size_t count : {0, 3, 70'000}) {
        std::vector<std::vector<std::int64_t>> in(4);
        std::vector<std::vector<std::int64_t>> out(4);
        std::vector<Request> requests;
        for (std::size_t i = 0; i < in.size(); ++i) {
            in[i].assign(count, world.rank() * 10 + static_cast<int>(i));
            out[i].assign(count, -1);
            requests.push_back(world.start(
                {Op::send, DType::int64, Reduction::none, bytes(in[i]), nullptr, count, 0, next}));
            requests.push_back(world.start({Op::receive, DType::int64, Reduction::none, nullptr,
                                            bytes(out[i]), 0, count, previous}));
        }
        std::ranges::reverse(requests);
        for (Request& request : requests) request.wait();
        for (std::size_t i = 0; i < in.size(); ++i)
            EXPECT_EQ(out[i],
                      std::vector<std::int64_t>(count, previous * 10 + static_cast<int>(i)));
    }
}

TEST(Mpi, MaximumAndMinimumOverANaNAreNaN) {
    Communicator& world = mpi_world().world();
    for (const DType type : {DType::fp32, DType::fp16, DType::bf16, DType::fp64})
        for (const Reduction reduction : {Reduction::max, Reduction::min})
            for (int with_nan = 0; with_nan < world.size(); ++with_nan) {
                std::vector<double> room(2);
                memory::store_element(type, bytes(room), 0,
                                      world.rank() == with_nan
                                          ? std::numeric_limits<double>::quiet_NaN()
                                          : world.rank());
                memory::store_element(type, bytes(room), 1, world.rank());
                world.all_reduce(bytes(room), bytes(room), 2, type, reduction).wait();
                EXPECT_TRUE(std::isnan(memory::load_element(type, bytes(room), 0)));
                EXPECT_EQ(memory::load_element(type, bytes(room), 1),
                          reduction == Reduction::max ? world.size() - 1 : 0);
            }
}

TEST(Mpi, ARequestThatNobodyWaitsForWaitsAtItsEnd) {
    Communicator& world = mpi_world().world();
    std::vector<std::int64_t> values(1000, 1);
    {
        const Request ended =
            world.all_reduce(bytes(values), bytes(values), 1000, DType::int64, Reduction::mean);
    }
    EXPECT_EQ(values, std::vector<std::int64_t>(1000, 1));
}

TEST(Mpi, WhatBreaksTheRulesIsRefusedAndHarmsNothing) {
    Communicator& world = mpi_world().world();
    std::vector<float> values(4, 1.0f);
    EXPECT_THROW((void)world.broadcast(bytes(values), 4, DType::fp32, world.size()), BadOperation);
    world.all_reduce(bytes(values), bytes(values), 4, DType::fp32, Reduction::sum).wait();
    EXPECT_EQ(values[3], static_cast<float>(world.size()));
}

}  // namespace

namespace {
MpiWorld* the_world = nullptr;
}  // namespace

MpiWorld& mpi_world() {
    return *the_world;
}

namespace {

// Of the last rank alone: the others print failures only.
class Quiet : public ::testing::EmptyTestEventListener {
    void OnTestPartResult(const ::testing::TestPartResult& result) override {
        if (!result.failed()) return;
        std::printf("rank %d: %s:%d: %s\n", mpi_world().world().rank(), result.file_name(),
                    result.line_number(), result.message());
        std::fflush(stdout);
    }
};

int run_as_rank(int largest_count) {
    MpiWorld world(std::chrono::seconds(60), largest_count);
    the_world = &world;
    if (world.world().rank() > 0) {
        auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
        delete listeners.Release(listeners.default_result_printer());
        listeners.Append(new Quiet);
    }
    return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace zeroproof::collectives

// mpi_test [--largest-count N]   as a rank: the tests of values
// mpi_test --scenario NAME       as a rank: ends in the way of that name
// mpi_test --failures            not as a rank: starts jobs of scenarios and looks at their ends
int main(int argc, char** argv) {
    using namespace zeroproof::collectives;
    const std::string mode = argc > 1 ? argv[1] : "";
    if (mode == "--scenario" && argc > 2) return run_scenario(argv[2]);
    ::testing::InitGoogleTest(&argc, argv);
    GTEST_FLAG_SET(filter, mode == "--failures" ? "MpiFailures.*" : "Mpi.*");
    if (mode == "--failures") return RUN_ALL_TESTS();
    return run_as_rank(mode == "--largest-count" && argc > 2 ? std::stoi(argv[2]) : INT_MAX);
}
