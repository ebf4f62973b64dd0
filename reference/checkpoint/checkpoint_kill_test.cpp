// A run that is killed at any moment, again and again, loses no step that it had saved.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <csignal>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "collectives/test_support.h"
#include "memory/sanitizers.h"
#include "reference/checkpoint/checkpoint_series.h"
#include "reference/test_rank.h"

namespace zeroproof::reference {
namespace {

namespace fs = std::filesystem;
using collectives::Communicator;

// The bits of masters, momenta and variances of each parameter, and of all weights: the same for
// any number of ranks.
using Bits = std::vector<std::uint32_t>;
struct WholeState {
    std::vector<Bits> masters, momenta, variances;
    Bits weights;
    bool operator==(const WholeState&) const = default;
};

void put(std::span<const float> values, Bits& into, std::size_t begin) {
    for (std::size_t i = 0; i < values.size(); ++i)
        into[begin + i] = std::bit_cast<std::uint32_t>(values[i]);
}

// Collective: each rank adds what it owns.
void collect(TestRank& rank, WholeState& whole) {
    static std::mutex mutex;
    const std::vector<float> weights = rank.weights();
    const std::lock_guard lock(mutex);
    whole.weights.resize(weights.size());
    put(weights, whole.weights, 0);
    for (auto* states : {&whole.masters, &whole.momenta, &whole.variances}) {
        states->resize(rank.model().parameters().size());
        for (std::size_t p = 0; p < states->size(); ++p)
            (*states)[p].resize(rank.model().parameters()[p].elements);
    }
    Stage& stage = rank.trainer().stage();
    for (const Slice& slice : stage.owned()) {
        put(stage.master(slice), whole.masters[slice.parameter], slice.begin);
        put(stage.momentum(slice), whole.momenta[slice.parameter], slice.begin);
        put(stage.variance(slice), whole.variances[slice.parameter], slice.begin);
    }
}

std::int64_t steps_taken(TestRank& rank) {
    return rank.trainer().stage().progress().steps_taken;
}

class KilledRuns : public testing::Test {
  protected:
    KilledRuns()
        : folder_(fs::temp_directory_path() /
                  ("zeroproof_checkpoint_kill_test." + std::to_string(getpid()))) {}
    ~KilledRuns() override { fs::remove_all(folder_); }

    // Nothing before the first save.
    fs::path newest() const {
        try {
            return CheckpointSeries(folder_).newest();
        } catch (const BadCheckpoint&) {
            return "";
        }
    }
    // Goes on from the newest checkpoint and saves after each step, until it is killed.
    [[noreturn]] void train() const {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        collectives::ThreadWorld world(2, collectives::kNever);
        (void)world.run([&](Communicator& ranks) {
            TestRank rank(ranks);
            CheckpointSeries series(folder_);
            if (const fs::path begin = newest(); !begin.empty()) rank.trainer().load(begin);
            while (true) {
                rank.steps(1);
                series.save(rank.trainer().stage(), rank.model(), "{}");
            }
        });
        _exit(1);
    }

    fs::path folder_;
};

TEST_F(KilledRuns, GoOnFromTheLastStepThatWasSaved) {
    if (memory::kThreadSanitizer)
        GTEST_SKIP() << "The thread sanitizer does not follow threads that a forked child starts.";
    using std::chrono::steady_clock;
    constexpr int kKills = 25;
    std::mt19937 random(17);
    std::uniform_int_distribution<int> microseconds(0, 50'000);
    std::map<std::int64_t, WholeState> loaded;
    std::int64_t last = 0;
    int killed_in_save = 0;
    for (int kill = 0; kill < kKills; ++kill) {
        const fs::path before = newest();
        const pid_t child = fork();  // before this process has started any thread that still runs
        ASSERT_NE(child, -1);
        if (child == 0) train();
        // Every other run is let come to a checkpoint first, however slow the disk.
        const auto patience = steady_clock::now() + std::chrono::seconds(30);
        while (kill % 2 == 1 && newest() == before && steady_clock::now() < patience)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        std::this_thread::sleep_for(std::chrono::microseconds(microseconds(random)));
        ASSERT_EQ(::kill(child, SIGKILL), 0);
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFSIGNALED(status)) << "the run ended by itself";

        const fs::path after = newest();
        if (after.empty()) continue;
        bool has_unfinished = false;
        std::int64_t step = 0;
        for (const auto& entry : fs::directory_iterator(folder_)) {
            if (entry.path().extension() == ".unfinished") {
                has_unfinished = true;
                continue;
            }
            WholeState state;
            collectives::run_ranks(1 + kill % 3, [&](Communicator& world) {
                TestRank rank(world, kill % 4);
                rank.trainer().load(entry.path());
                collect(rank, state);
                if (world.rank() == 0) step = steps_taken(rank);
            });
            loaded[step] = state;
            if (entry.path() == after) {
                EXPECT_GE(step, last);
                last = step;
            }
        }
        if (has_unfinished) ++killed_in_save;
    }
    RecordProperty("steps", static_cast<int>(last));
    RecordProperty("killed_in_save", killed_in_save);
    EXPECT_GE(last, kKills / 2);
    EXPECT_GT(killed_in_save, 0);

    // The run that nobody killed.
    std::map<std::int64_t, WholeState> wanted;
    for (const auto& [step, state] : loaded) wanted[step] = {};
    collectives::run_ranks(2, [&](Communicator& world) {
        TestRank rank(world);
        for (auto& [step, state] : wanted) {
            rank.steps(static_cast<int>(step - steps_taken(rank)));
            collect(rank, state);
        }
    });
    for (const auto& [step, state] : loaded) EXPECT_TRUE(state == wanted[step]) << step;
}

}  // namespace
}  // namespace zeroproof::reference
