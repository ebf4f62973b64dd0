// Which checkpoints of a run are there, whatever happened while they were saved.
#include "reference/checkpoint/checkpoint_series.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <set>

#include "collectives/test_support.h"
#include "reference/checkpoint/whole_file.h"
#include "reference/test_rank.h"

namespace zeroproof::reference {
namespace {

namespace fs = std::filesystem;
using collectives::Communicator;

std::string error_of(const std::function<void()>& call) {
    try {
        call();
        return "";
    } catch (const BadCheckpoint& error) {
        return error.what();
    }
}

void expect_in(const std::string& wanted, const std::string& message) {
    EXPECT_NE(message.find(wanted), std::string::npos) << "'" << wanted << "' not in: " << message;
}

class Series : public testing::Test {
  protected:
    Series()
        : folder_(fs::temp_directory_path() /
                  ("zeroproof_checkpoint_series_test." + std::to_string(getpid()))) {}
    ~Series() override { fs::remove_all(folder_); }

    // Two ranks train to `last` and save after each step from `first` on.
    void save(int first, int last, std::size_t keep = 2, const std::string& text = "{}") const {
        collectives::run_ranks(2, [&](Communicator& world) {
            TestRank rank(world);
            CheckpointSeries series(folder_, keep);
            for (int step = 1; step <= last; ++step) {
                rank.steps(1);
                if (step >= first) series.save(rank.trainer().stage(), rank.model(), text);
            }
        });
    }
    std::int64_t steps_in(const fs::path& checkpoint) const {
        std::int64_t steps = 0;
        collectives::run_ranks(1, [&](Communicator& world) {
            TestRank rank(world);
            rank.trainer().load(checkpoint);
            steps = rank.trainer().stage().progress().steps_taken;
        });
        return steps;
    }
    std::set<std::string> names() const {
        std::set<std::string> names;
        for (const auto& entry : fs::directory_iterator(folder_))
            names.insert(entry.path().filename().string());
        return names;
    }

    fs::path folder_;
};

TEST_F(Series, SavesKeepsTwoAndGivesTheNewest) {
    save(1, 4, 2, "{\"seed\": 7}");
    EXPECT_EQ(names(), (std::set<std::string>{"step-00000003", "step-00000004"}));
    const fs::path newest = CheckpointSeries(folder_).newest();
    EXPECT_EQ(newest, folder_ / "step-00000004");
    EXPECT_EQ(steps_in(newest), 4);
    EXPECT_EQ(read_description(newest), "{\"seed\": 7}");
    EXPECT_THROW(CheckpointSeries(folder_, 0), std::invalid_argument);
}

TEST_F(Series, KeepsAsManyAsAskedFor) {
    save(1, 4, 3);
    EXPECT_EQ(names().size(), 3u);
    save(5, 5, 1);
    EXPECT_EQ(names(), (std::set<std::string>{"step-00000005"}));
}

// Four ranks that hold two parts of the weights. Two series would come to their ends at two
// moments, and a run that was killed between those would go on with parts of two steps.
TEST_F(Series, PartsOfWeightsThatAreCutAreSavedTogether) {
    const auto with_ranks = [](const std::function<void(TestRank&, Communicator&)>& run) {
        collectives::run_ranks(4, [&](Communicator& world) {
            TestRank rank(world, 2, kTestParameters, 2);
            run(rank, world);
        });
    };
    std::vector<std::vector<float>> saved(4);
    with_ranks([&](TestRank& rank, Communicator& world) {
        rank.steps(1);
        Stage& stage = rank.trainer().stage();
        const int part = world.rank() % 2;
        for (const Slice& slice : stage.owned())
            stage.momentum(slice)[0] += static_cast<float>(part);
        CheckpointSeries(folder_).save(stage, rank.model(), "{}");
        saved[static_cast<std::size_t>(world.rank())] = rank.state();
    });
    EXPECT_EQ(names(), (std::set<std::string>{"step-00000001"}));
    with_ranks([&](TestRank& rank, Communicator& world) {
        rank.trainer().load(CheckpointSeries(folder_).newest());
        EXPECT_EQ(rank.state(), saved[static_cast<std::size_t>(world.rank())]) << world.rank();
    });
    EXPECT_NE(saved[0], saved[1]);
}

TEST_F(Series, WhatOneRankCouldNotWriteNoOtherPartKeeps) {
    collectives::run_ranks(4, [&](Communicator& world) {
        TestRank rank(world, 2, kTestParameters, 2);
        const std::string message = error_of([&] {
            write_together(rank.trainer().stage(), [&] {
                if (world.rank() == 3) throw BadCheckpoint("the disk is full");
            });
        });
        EXPECT_EQ(message, world.rank() == 3 ? "the disk is full"
                                             : "rank 1 could not write: the disk is full");
    });
}

// Names are compared as numbers: the eight digits are for people.
TEST_F(Series, TheNewestIsOfTheLargestNumber) {
    for (const char* name :
         {"step-00000009", "step-99999999", "step-100000000", "step-200", "step-", "step-00000x11",
          "step--0000001", "step-900000000.unfinished"})
        fs::create_directories(folder_ / name);
    EXPECT_EQ(CheckpointSeries(folder_).newest(), folder_ / "step-100000000");
}

TEST_F(Series, WithoutACheckpointTheMessageSaysWhatIsThere) {
    const CheckpointSeries series(folder_);
    expect_in("No such file", error_of([&] { (void)series.newest(); }));
    fs::create_directories(folder_);
    expect_in("It holds nothing", error_of([&] { (void)series.newest(); }));
    fs::create_directories(folder_ / "step-00000003.unfinished");
    fs::create_directories(folder_ / "notes");
    const std::string message = error_of([&] { (void)series.newest(); });
    expect_in(folder_.string() + ": holds no checkpoint", message);
    expect_in("It holds notes, step-00000003.unfinished", message);
}

TEST_F(Series, WhatACrashLeftIsIgnoredAndReplaced) {
    save(1, 2);
    for (const char* name : {"step-00000003.unfinished", "step-00000001.unfinished"}) {
        fs::create_directories(folder_ / name);
        std::ofstream(folder_ / name / "rank-00007.zpck") << "half of it";
    }
    EXPECT_EQ(CheckpointSeries(folder_).newest(), folder_ / "step-00000002");
    save(3, 3);
    EXPECT_EQ(names(), (std::set<std::string>{"step-00000002", "step-00000003"}));
    EXPECT_FALSE(fs::exists(folder_ / "step-00000003" / "rank-00007.zpck"));
    EXPECT_EQ(steps_in(CheckpointSeries(folder_).newest()), 3);
}

TEST_F(Series, ACheckpointOfTheSameStepIsReplaced) {
    save(2, 2, 2, "old");
    std::ofstream(folder_ / "step-00000002" / "rank-00001.zpck") << "damaged";
    save(2, 2, 2, "new");
    EXPECT_EQ(names(), (std::set<std::string>{"step-00000002"}));
    EXPECT_EQ(read_description(folder_ / "step-00000002"), "new");
    EXPECT_EQ(steps_in(folder_ / "step-00000002"), 2);
}

TEST_F(Series, ARunDoesNotSaveBehindLaterCheckpoints) {
    save(4, 5);
    const CheckpointSeries series(folder_);
    EXPECT_EQ(error_of([&] { series.require_none_after(5); }), "");
    expect_in("step-00000005: is later than step 4",
              error_of([&] { series.require_none_after(4); }));
    collectives::run_ranks(2, [&](Communicator& world) {
        TestRank rank(world);
        rank.steps(3);
        const std::string message = error_of(
            [&] { CheckpointSeries(folder_).save(rank.trainer().stage(), rank.model(), "{}"); });
        expect_in(world.rank() == 0 ? "is later than step 3" : "rank 0 could not write", message);
    });
    EXPECT_EQ(names(), (std::set<std::string>{"step-00000004", "step-00000005"}));
}

// As of a node that does not see the file system of the others: its folder is another one.
TEST_F(Series, OneRankThatCannotWriteIsAnErrorOnAllAndTheOldOnesStay) {
    save(1, 2);
    for (const int failing : {0, 1, 2})
        collectives::run_ranks(3, [&](Communicator& world) {
            TestRank rank(world);
            rank.steps(3);
            const bool fails = world.rank() == failing;
            const CheckpointSeries there(folder_);
            // Rank 0 makes the folder, unless there is a file in its place.
            CheckpointSeries series(fails ? folder_ / "step-00000002" / "run.json" : folder_);
            const std::string message =
                error_of([&] { series.save(rank.trainer().stage(), rank.model(), "{}"); });
            expect_in("Not a directory", message);
            EXPECT_EQ(message.starts_with("rank " + std::to_string(failing) + " could not write: "),
                      !fails);
            rank.trainer().load(there.newest());
            EXPECT_EQ(rank.trainer().stage().progress().steps_taken, 2);
        });
    EXPECT_EQ(names(), (std::set<std::string>{"step-00000001", "step-00000002"}));
}

TEST_F(Series, ADamagedCheckpointIsRefusedAndTheOthersAreNamed) {
    save(1, 3, 3);
    const fs::path newest = CheckpointSeries(folder_).newest();
    const fs::path file = newest / "rank-00001.zpck";
    std::string bytes = read_whole(file);
    bytes[bytes.size() / 2] ^= 4;
    write_whole(bytes, file);
    const std::string others =
        (folder_ / "step-00000002").string() + ", " + (folder_ / "step-00000001").string();
    for (const fs::path& named : {newest, newest / "", newest / "." / ""})
        collectives::run_ranks(2, [&](Communicator& world) {
            TestRank rank(world);
            const std::string message = error_of([&] { rank.trainer().load(named); });
            expect_in("it is damaged; other checkpoints of this run: " + others, message);
        });
    EXPECT_EQ(steps_in(folder_ / "step-00000002"), 2);
}

TEST_F(Series, WhereThereIsNoOtherCheckpointNoneIsNamed) {
    save(1, 1);
    EXPECT_EQ(other_checkpoints(folder_ / "step-00000001"), "");
    EXPECT_EQ(other_checkpoints(folder_ / "no" / "such"), "");
    expect_in("cannot be read", error_of([&] { (void)read_description(folder_); }));
}

}  // namespace
}  // namespace zeroproof::reference
