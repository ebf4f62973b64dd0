// A training step of the reference beside one of PyTorch, and what a step is made of.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <thread>

#include "harness/train/run_training.h"
#include "harness/train/timeline.h"
#include "scenarios/transformer_model.h"
#include "suites/benchmarks/training/peer.h"
#include "suites/benchmarks/training/products.h"

namespace zeroproof {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRanks = 2;
constexpr double kPeerLimit = 1.0;         // of PyTorch's time
constexpr double kRecomputeLimit = 1.35;   // of the time without
constexpr double kLedgerLimit = 0.01;      // of a step
constexpr double kProductsAtLeast = 0.80;  // of what the library reaches alone

struct Options {
    std::string model = "gpt2-10m";
    std::string python;
    int pairs = 7;
    int steps = 3;  // of each member of a pair
    std::size_t samples = 4;
    bool no_peer = false;
};

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

int threads_of_rank() {
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / kRanks);
}

harness::TrainPlan plan_of(const Options& options, int stage) {
    harness::TrainPlan plan;
    plan.model = scenarios::load_transformer_model(options.model);
    plan.stage = stage;
    plan.ranks = kRanks;
    plan.samples = options.samples;
    plan.steps = options.steps + 1;  // the first one is not timed: it finds its memory
    plan.timeline_end = plan.timeline_begin;
    return plan;
}

// Trains; `step` is called by the first rank after each step.
harness::TrainRecord trained(const harness::TrainPlan& plan, const std::function<void()>& step) {
    const harness::TextFile& text = harness::text_files().front();
    const harness::TextData data(std::string(text.text), std::string(text.name),
                                 plan.model.sequence);
    harness::TrainRecord record;
    record.plan = plan;
    harness::run_training(data, {.step = [&](const harness::StepResult&) { step(); }}, record);
    if (!record.complete) throw std::runtime_error(record.ended_by);
    return record;
}

double step_seconds(const harness::TrainPlan& plan) {
    std::vector<double> seconds;
    for (const harness::StepResult& step : trained(plan, [] {}).steps)
        if (step.step > 1) seconds.push_back(step.seconds);
    return median(seconds);
}

struct Pairs {
    std::vector<double> ours, others, ratios;

    std::string spread() const {
        std::vector<double> sorted = ratios;
        std::ranges::sort(sorted);
        return fmt::format("ratio {:.3f} ({:.3f} to {:.3f} in the middle half)", median(ratios),
                           sorted[sorted.size() / 4], sorted[3 * sorted.size() / 4]);
    }
};

// Both take turns, so that what else the machine does falls on both.
Pairs measure(int count, const std::string& what, const std::function<double()>& ours,
              const std::function<double()>& other) {
    Pairs pairs;
    for (int i = 0; i < count; ++i) {
        fmt::print(stderr, "{}: pair {} of {}\n", what, i + 1, count);
        const double first = i % 2 == 0 ? ours() : other();
        const double second = i % 2 == 0 ? other() : ours();
        pairs.ours.push_back(i % 2 == 0 ? first : second);
        pairs.others.push_back(i % 2 == 0 ? second : first);
        pairs.ratios.push_back(pairs.ours.back() / pairs.others.back());
    }
    return pairs;
}

void print(const std::string& line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);
}

void compare_with_peer(const Options& options, Peer& peer, const std::string& name, int stage) {
    const harness::TrainPlan plan = plan_of(options, stage);
    const Pairs pairs = measure(
        options.pairs, fmt::format("stage {} beside {}", stage, name),
        [&] { return step_seconds(plan); }, [&] { return median(peer.steps(options.steps)); });
    print(fmt::format("stage {}, a step: ours {:.3f} s, {} {:.3f} s, {}, limit {}", stage,
                      median(pairs.ours), name, median(pairs.others), pairs.spread(), kPeerLimit));
}

void compare_with_peers(const Options& options) {
    for (const auto& [name, kind, stages] :
         {std::tuple("DDP", "ddp", std::vector{0, 1}), {"FSDP2", "fsdp2", {3}}}) {
        fmt::print(stderr, "starting {}\n", name);
        Peer peer(
            options.python,
            {std::string(ZEROPROOF_SOURCE_DIR) + "/scenarios/models/" + options.model + ".json",
             "--peer", kind, "--ranks", std::to_string(kRanks), "--samples",
             std::to_string(options.samples), "--threads", std::to_string(threads_of_rank())});
        print(fmt::format("{}: {}", name, peer.description()));
        for (const int stage : stages) compare_with_peer(options, peer, name, stage);
    }
}

void compare_recompute(const Options& options) {
    const harness::TrainPlan without = plan_of(options, 0);
    harness::TrainPlan with = without;
    with.blocks_per_checkpoint = 1;
    const Pairs pairs = measure(
        options.pairs, "recomputation", [&] { return step_seconds(with); },
        [&] { return step_seconds(without); });
    print(fmt::format("activations computed again: with {:.3f} s, without {:.3f} s, {}, limit {}",
                      median(pairs.ours), median(pairs.others), pairs.spread(), kRecomputeLimit));
}

// What a rank's ledger and its poison did in one step.
struct Accounting {
    std::vector<harness::TimelinePoint> changes;
    double step = 0;  // seconds

    std::size_t live_bytes(std::size_t change) const {
        std::size_t all = 0;
        for (const std::size_t bytes : changes[change].live_bytes) all += bytes;
        return all;
    }
};

Accounting accounting_of(const Options& options) {
    harness::TrainPlan plan = plan_of(options, 0);
    plan.timeline_end = plan.timeline_begin + 1;
    harness::TrainRecord record = trained(plan, [] {});
    return {std::move(record.by_rank[0].timeline), step_seconds(plan_of(options, 0))};
}

// The same changes of a ledger that has the same observer, and nothing else.
double ledger_seconds(const Accounting& accounting) {
    constexpr int kRepeats = 200;
    memory::Ledger ledger;
    harness::Timeline timeline;
    ledger.observe(&timeline);
    const Clock::time_point begin = Clock::now();
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
        memory::BytesByCategory live{};
        for (const harness::TimelinePoint& change : accounting.changes) {
            bool changed = false;
            for (std::size_t c = 0; c < memory::kCategories; ++c) {
                const auto category = static_cast<memory::Category>(c);
                if (change.live_bytes[c] == live[c]) continue;
                changed = true;
                if (change.live_bytes[c] > live[c])
                    ledger.add(category, change.live_bytes[c] - live[c]);
                else
                    ledger.remove(category, live[c] - change.live_bytes[c]);
            }
            if (!changed) ledger.enter(change.phase);
            live = change.live_bytes;
        }
        for (std::size_t c = 0; c < memory::kCategories; ++c)
            ledger.remove(static_cast<memory::Category>(c), live[c]);
    }
    return std::chrono::duration<double>(Clock::now() - begin).count() / kRepeats;
}

// Bytes are filled with poison as they are taken and as they are returned.
std::size_t poisoned_bytes(const Accounting& accounting) {
    std::size_t bytes = 0;
    for (std::size_t i = 1; i < accounting.changes.size(); ++i) {
        const std::size_t before = accounting.live_bytes(i - 1);
        const std::size_t after = accounting.live_bytes(i);
        bytes += std::max(before, after) - std::min(before, after);
    }
    return bytes;
}

void show_accounting(const Options& options) {
    fmt::print(stderr, "the ledger\n");
    const Accounting accounting = accounting_of(options);
    const double seconds = ledger_seconds(accounting);
    print(
        fmt::format("ledger: {} changes in a step, {:.6f} s, step {:.3f} s, ratio {:.5f}, "
                    "limit {}; {:.0f} MB of poison beside it",
                    accounting.changes.size(), seconds, accounting.step, seconds / accounting.step,
                    kLedgerLimit, static_cast<double>(poisoned_bytes(accounting)) / 1e6));
}

void show_products(const Options& options) {
    harness::TrainPlan plan = plan_of(options, 0);
    plan.steps = 2;
    Products products;  // of the second step
    std::vector<double> shares;
    const Pairs pairs = measure(
        options.pairs, "products of matrices",
        [&] {
            const double step =
                trained(plan, [&] { products = take_products(); }).steps.back().seconds;
            shares.push_back(products.seconds / step);
            return products.seconds;
        },
        [&] {
            if (products.calls.empty()) trained(plan, [&] { products = take_products(); });
            return time_alone(products.calls, kRanks);
        });
    std::vector<double> reached;
    for (const double ratio : pairs.ratios) reached.push_back(1 / ratio);
    std::ranges::sort(reached);
    const double operations = 1e-9 * products.operations();
    print(
        fmt::format("products of matrices: {} a step of a rank, {:.1f} G operations, {:.3f} of "
                    "the step's time",
                    products.calls.size(), operations, median(shares)));
    print(
        fmt::format("within a step they reach {:.1f} GFLOP/s a rank, OpenBLAS alone on the same "
                    "shapes {:.1f}, ratio {:.3f} ({:.3f} to {:.3f} in the middle half), limit {} "
                    "at least; the whole step comes to {:.3f} of it",
                    operations / median(pairs.ours), operations / median(pairs.others),
                    median(reached), reached[reached.size() / 4], reached[3 * reached.size() / 4],
                    kProductsAtLeast, median(reached) * median(shares)));
}

}  // namespace
}  // namespace zeroproof

int main(int argc, char** argv) {
    using namespace zeroproof;
    Options options;
    CLI::App app("Times training steps of the reference on 2 ranks, beside PyTorch on 2 processes");
    app.footer(
        "Example: zeroproof_training_benchmarks --pairs 9 --python build/adapters/bin/python\n"
        "PyTorch is that of ci/setup --adapters, unless --python names another. A processor for\n"
        "each rank should be free: medians of pairs are robust against others' work, not against\n"
        "a machine that is never idle.");
    app.add_option("--model", options.model, "A known model")->capture_default_str();
    app.add_option("--pairs", options.pairs, "Measurements of each comparison, in turns")
        ->capture_default_str()
        ->check(CLI::Range(5, 1000));
    app.add_option("--steps", options.steps, "Steps of which one measurement is the median")
        ->capture_default_str()
        ->check(CLI::Range(1, 1000));
    app.add_option("--samples", options.samples, "Sequences of a step, on each rank")
        ->capture_default_str()
        ->check(CLI::Range(1, 1024));
    app.add_option("--python", options.python, "An interpreter with torch")->type_name("FILE");
    app.add_flag("--no-peer", options.no_peer, "Leave PyTorch out");
    CLI11_PARSE(app, argc, argv);
    try {
        if (!options.no_peer) compare_with_peers(options);
        compare_recompute(options);
        show_accounting(options);
        show_products(options);
    } catch (const std::exception& error) {
        fmt::print(stderr, "zeroproof_training_benchmarks: {}\n", error.what());
        return 1;
    }
    return 0;
}
