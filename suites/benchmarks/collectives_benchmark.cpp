// Bus bandwidth of the embedded backend, beside what the memory of this machine allows.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "collectives/thread_world.h"
#include "memory/space.h"

namespace zeroproof::collectives {
namespace {

using Clock = std::chrono::steady_clock;
using Bytes = std::vector<std::byte>;

double seconds(Clock::duration duration) {
    return std::chrono::duration<double>(duration).count();
}

// Ranks that begin rounds together, and the time from there to the end of the slowest.
class Rounds {
  public:
    explicit Rounds(int ranks)
        : ends_(static_cast<std::size_t>(ranks)), barrier_(ranks, Begin{this}) {}

    // Called by every rank. The time is of use once all have returned, hence to the next caller.
    template <typename Work>
    double run(int rank, const Work& work) {
        barrier_.arrive_and_wait();
        const Clock::time_point begin = begin_;
        work();
        ends_[static_cast<std::size_t>(rank)] = Clock::now();
        barrier_.arrive_and_wait();
        return seconds(*std::max_element(ends_.begin(), ends_.end()) - begin);
    }

  private:
    struct Begin {
        Rounds* rounds;
        void operator()() noexcept { rounds->begin_ = Clock::now(); }
    };
    Clock::time_point begin_;
    std::vector<Clock::time_point> ends_;
    std::barrier<Begin> barrier_;
};

// Bytes per second that all cores together copy now, each between buffers of its own far past any
// cache. The best of some rounds: other load on the machine can only lower it.
double copy_bytes_per_second() {
    static const auto cores = std::max(1u, std::thread::hardware_concurrency());
    constexpr std::size_t kBytes = std::size_t{128} << 20;
    struct Buffers {
        Bytes from;
        Bytes to;
    };
    static std::vector<Buffers> buffers(cores);
    Rounds rounds(static_cast<int>(cores));
    double best = 0;  // written by the first core alone
    {
        std::vector<std::jthread> threads;
        for (unsigned core = 0; core < cores; ++core)
            threads.emplace_back([&, core] {
                Buffers& mine = buffers[core];
                mine.from.resize(kBytes);
                mine.to.resize(kBytes);
                for (int round = 0; round < 10; ++round) {
                    const double time = rounds.run(static_cast<int>(core), [&] {
                        std::memcpy(mine.to.data(), mine.from.data(), kBytes);
                        benchmark::DoNotOptimize(mine.to.data());
                    });
                    if (core == 0)
                        best = std::max(best, static_cast<double>(kBytes) * cores / time);
                }
            });
    }
    return best;
}

// For a logical tensor of `bytes` over N ranks. Every output has to be written, and every input
// read; caches can spare an all-gather all but the first reading of an input.
//   all_reduce      reads N, writes N tensors
//   reduce_scatter  reads N, writes 1 (each rank its part)
//   all_gather      reads 1, writes N
// A copy reads and writes each byte once, so it moves two bytes where it copies one.
double moved_bytes(Op op, double bytes, int ranks) {
    return op == Op::all_reduce ? 2 * ranks * bytes : (ranks + 1) * bytes;
}

// The formulas of nccl-tests.
double bus_bytes(Op op, double bytes, int ranks) {
    return (op == Op::all_reduce ? 2.0 : 1.0) * (ranks - 1) / ranks * bytes;
}

Operation operation_of(Op op, std::size_t elements, int ranks) {
    const std::size_t part = elements / static_cast<std::size_t>(ranks);
    Operation operation;
    operation.op = op;
    operation.reduction = op == Op::all_gather ? Reduction::none : Reduction::sum;
    operation.in_elements = op == Op::all_gather ? part : elements;
    operation.out_elements = op == Op::reduce_scatter ? part : elements;
    return operation;
}

void collective(benchmark::State& state, Op op) {
    const int ranks = static_cast<int>(state.range(0));
    const auto bytes = static_cast<double>(state.range(1));
    ThreadWorld world(ranks, std::chrono::minutes(5));
    Rounds rounds(ranks);
    double total_seconds = 0;
    bool more = true;  // written by rank 0, read by all after a barrier
    const auto failure = world.run([&](Communicator& communicator) {
        Operation operation =
            operation_of(op, static_cast<std::size_t>(state.range(1)) / sizeof(float), ranks);
        memory::Space space("rank");
        memory::Buffer input(space, memory::Category::buffer, operation.type,
                             operation.in_elements);
        memory::Buffer output(space, memory::Category::buffer, operation.type,
                              operation.out_elements);
        input.fill_zero();
        operation.input = input.data();
        operation.output = output.data();
        const auto round = [&] {
            return rounds.run(communicator.rank(), [&] { communicator.start(operation).wait(); });
        };
        round();
        if (communicator.rank() == 0) {
            while (state.KeepRunning()) {
                rounds.run(0, [] {});
                const double time = round();
                total_seconds += time;
                state.SetIterationTime(time);
            }
            more = false;
            rounds.run(0, [] {});
        } else {
            while (rounds.run(communicator.rank(), [] {}), more) round();
        }
    });
    if (failure) state.SkipWithError(failure->message.c_str());

    const double time = total_seconds / static_cast<double>(state.iterations());
    const double copy = copy_bytes_per_second();
    const double limit = moved_bytes(op, bytes, ranks) / 2 / copy;
    state.counters["busbw_GBps"] = bus_bytes(op, bytes, ranks) / time / 1e9;
    state.counters["copy_GBps"] = copy / 1e9;
    state.counters["of_limit"] = limit / time;
}

void sizes(benchmark::internal::Benchmark* benchmark) {
    benchmark->ArgNames({"ranks", "bytes"})->UseManualTime()->MinTime(0.1);
    for (const int ranks : {2, 4, 8})
        for (const int kib : {1, 8, 64, 256, 1024, 4096, 16384, 65536})
            benchmark->Args({ranks, std::int64_t{kib} * 1024});
}

BENCHMARK_CAPTURE(collective, all_reduce, Op::all_reduce)->Apply(sizes);
BENCHMARK_CAPTURE(collective, reduce_scatter, Op::reduce_scatter)->Apply(sizes);
BENCHMARK_CAPTURE(collective, all_gather, Op::all_gather)->Apply(sizes);

}  // namespace
}  // namespace zeroproof::collectives
