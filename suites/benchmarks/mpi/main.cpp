// Beside a bare loop of the same MPI calls, and beside the threads of one process. Run it as
//     mpirun -n 4 zeroproof_mpi_benchmarks
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "collectives/mpi/mpi_header.h"
#include "collectives/mpi/mpi_world.h"
#include "collectives/thread_world.h"
#include "harness/bench/operation_bench.h"

namespace zeroproof {
namespace {

using collectives::Op;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kTimeout{60};
constexpr int kRounds = 31;
constexpr double kOverheadLimit = 1.02;
constexpr double kThreadsLimit = 4;

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

// Seconds of one call, the longest over the ranks.
template <typename Call>
double timed(harness::Team& team, int iterations, const Call& call) {
    team.barrier();
    const auto start = Clock::now();
    for (int i = 0; i < iterations; ++i) call();
    const double mine = std::chrono::duration<double>(Clock::now() - start).count() / iterations;
    return std::ranges::max(team.gather(mine));
}

// Both loops take turns, so that what else the machine does falls on both.
void compare_with_bare_loop(harness::Team& team, std::size_t bytes) {
    const std::size_t elements = bytes / sizeof(float);
    std::vector<float> input(elements, 1.0f), output(elements);
    const auto bare = [&] {
        MPI_Request request;
        MPI_Iallreduce(input.data(), output.data(), static_cast<int>(elements), MPI_FLOAT, MPI_SUM,
                       MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    };
    const auto ours = [&] {
        team.world()
            .all_reduce(reinterpret_cast<const std::byte*>(input.data()),
                        reinterpret_cast<std::byte*>(output.data()), elements, memory::DType::fp32,
                        collectives::Reduction::sum)
            .wait();
    };
    const double once = timed(team, 3, bare);
    const int iterations = static_cast<int>(std::clamp(0.02 / once, 1.0, 2000.0));
    std::vector<double> bare_seconds, our_seconds, ratios;
    for (int round = 0; round < kRounds; ++round) {
        const bool bare_first = round % 2 == 0;
        const double first =
            bare_first ? timed(team, iterations, bare) : timed(team, iterations, ours);
        const double second =
            bare_first ? timed(team, iterations, ours) : timed(team, iterations, bare);
        bare_seconds.push_back(bare_first ? first : second);
        our_seconds.push_back(bare_first ? second : first);
        ratios.push_back(our_seconds.back() / bare_seconds.back());
    }
    if (!team.leads()) return;
    std::vector<double> sorted = ratios;
    std::ranges::sort(sorted);
    fmt::print(
        "all_reduce of {:>8} bytes: bare {:9.1f} us, ours {:9.1f} us, ratio {:.3f} "
        "({:.3f} to {:.3f} in the middle half), limit {}\n",
        bytes, 1e6 * median(bare_seconds), 1e6 * median(our_seconds), median(ratios),
        sorted[kRounds / 4], sorted[3 * kRounds / 4], kOverheadLimit);
    std::fflush(stdout);
}

// Rank 0 runs the threads while the others sleep.
void compare_with_threads(harness::Team& team, Op op, std::uint64_t bytes) {
    const harness::Measuring measuring{.warm_up = 3, .repeats = 15, .least_seconds = 0.05};
    const harness::OperationPlan plan{op, "native", memory::DType::fp32, bytes};
    const collectives::Topology topology{
        .name = "one node", .nodes = 1, .ranks_per_node = team.ranks(), .links = {}};
    const double mpi =
        harness::time_operation(team, plan, topology, measuring).timing.median_seconds();
    double threads = 0;
    if (team.leads()) {
        collectives::ThreadWorld world(team.ranks(), kTimeout);
        const auto failure = world.run([&](collectives::Communicator& communicator) {
            harness::Team inner(communicator);
            const auto result = harness::time_operation(inner, plan, topology, measuring);
            if (inner.leads()) threads = result.timing.median_seconds();
        });
        if (failure) throw std::runtime_error(failure->message);
    }
    // A rank that waited inside MPI would take a processor from the threads.
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (int done = 0; done == 0;) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (!team.leads()) return;
    const double bus_bytes = harness::bus_factor(op, team.ranks()) * static_cast<double>(bytes);
    fmt::print(
        "{:<15} {} ranks, 16 MiB: {} {:.2f} GB/s, threads {:.2f} GB/s of bus bandwidth, "
        "ratio {:.2f}, limit {}\n",
        collectives::name_of(op), team.ranks(), collectives::MpiWorld::library(),
        bus_bytes / mpi / 1e9, bus_bytes / threads / 1e9, mpi / threads, kThreadsLimit);
    std::fflush(stdout);
}

}  // namespace
}  // namespace zeroproof

int main() {
    using namespace zeroproof;
    collectives::MpiWorld mpi(kTimeout);
    harness::Team team(mpi.world());
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{4} << 10, std::size_t{64} << 10,
                                    std::size_t{1} << 20, std::size_t{16} << 20})
        compare_with_bare_loop(team, bytes);
    for (const Op op : {Op::all_reduce, Op::reduce_scatter, Op::all_gather})
        compare_with_threads(team, op, std::uint64_t{16} << 20);
    return 0;
}
