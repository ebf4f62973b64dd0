// Which checkpoints a trainer refuses, and that it stays as it was.
#include "reference/checkpoint/checkpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>

#include "collectives/test_support.h"
#include "reference/checkpoint/checkpoint_file.h"
#include "reference/test_rank.h"

namespace zeroproof::reference {
namespace {

namespace fs = std::filesystem;

class Checkpoints : public testing::Test {
  protected:
    Checkpoints()
        : folder_(fs::temp_directory_path() /
                  ("zeroproof_checkpoint_test." + std::to_string(getpid()))) {
        fs::create_directories(folder_);
        save(2, 2);
    }
    ~Checkpoints() override { fs::remove_all(folder_); }

    void save(int ranks, int steps) const {
        collectives::run_ranks(ranks, [&](collectives::Communicator& world) {
            TestRank rank(world);
            rank.steps(steps);
            rank.trainer().save(folder_);
        });
    }
    fs::path path(int rank) const {
        return folder_ / ("rank-0000" + std::to_string(rank) + ".zpck");
    }
    void change(int rank, const std::function<void(CheckpointFile&)>& change) const {
        CheckpointFile file = read_file(path(rank));
        change(file);
        write_file(file, path(rank));
    }

    // Every rank of three refuses the folder for this reason, and trains on as if nothing was.
    void expect_refused(const fs::path& named, const std::string& why,
                        const std::vector<Parameter>& parameters = kTestParameters) const {
        collectives::run_ranks(3, [&](collectives::Communicator& world) {
            TestRank loads(world, 2, parameters);
            TestRank does_not(world, 2, parameters);
            loads.steps(1);
            does_not.steps(1);
            try {
                loads.trainer().load(folder_);
                ADD_FAILURE() << "loaded: " << why;
            } catch (const BadCheckpoint& error) {
                const std::string message = error.what();
                EXPECT_NE(message.find(named.string()), std::string::npos) << message;
                EXPECT_NE(message.find(why), std::string::npos) << message;
            }
            EXPECT_EQ(loads.state(), does_not.state());
            loads.steps(1);
            does_not.steps(1);
            EXPECT_EQ(loads.state(), does_not.state());
        });
    }

    fs::path folder_;
};

TEST_F(Checkpoints, LoadAtAnyNumberOfRanksAndStage) {
    std::vector<float> wanted;
    collectives::run_ranks(2, [&](collectives::Communicator& world) {
        TestRank rank(world);
        rank.steps(3);
        const std::vector<float> weights = rank.weights();
        if (world.rank() == 0) wanted = weights;
    });
    for (const int ranks : {1, 2, 3})
        for (const int stage : {0, 1, 2, 3})
            collectives::run_ranks(ranks, [&](collectives::Communicator& world) {
                TestRank rank(world, stage);
                rank.trainer().load(folder_);
                EXPECT_EQ(rank.trainer().stage().progress().steps_taken, 2);
                rank.steps(1);
                EXPECT_EQ(rank.weights(), wanted) << ranks << " ranks, stage " << stage;
            });
}

TEST_F(Checkpoints, AGapIsRefused) {
    change(1, [](CheckpointFile& file) { file.slices.pop_back(); });
    expect_refused(path(1), "none has element 7 of 'b'");
}

TEST_F(Checkpoints, AnOverlapIsRefused) {
    change(1, [](CheckpointFile& file) { file.slices.push_back(file.slices.front()); });
    expect_refused(path(1), "has element 2 of 'a', which is saved twice");
}

// As many elements as there should be, but not those.
TEST_F(Checkpoints, AnOverlapDoesNotFillAGap) {
    change(1, [](CheckpointFile& file) {
        ASSERT_EQ(file.slices[0].master.size(), 2u);
        ASSERT_EQ(file.slices[0].begin, 2u);
        file.slices[0].begin = 0;
    });
    expect_refused(path(1), "has element 0 of 'a', which is saved twice");
    change(1, [](CheckpointFile& file) { file.slices[0].begin = 4; });
    expect_refused(path(1), "none has element 2 of 'a'");
}

TEST_F(Checkpoints, FilesOfTwoStepsAreRefused) {
    const fs::path kept = folder_ / "kept";
    fs::copy_file(path(1), kept);
    save(2, 3);
    fs::rename(kept, path(1));
    expect_refused(path(1), "other steps than that of rank 0 (2 taken and 0 skipped)");
}

TEST_F(Checkpoints, AMissingFileIsRefused) {
    fs::remove(path(1));
    expect_refused(path(1), "cannot be read");
    fs::remove(path(0));
    expect_refused(path(0), "cannot be read");
}

TEST_F(Checkpoints, FilesOfTwoNumbersOfRanksAreRefused) {
    const fs::path kept = folder_ / "kept";
    fs::copy_file(path(0), kept);
    save(3, 2);
    fs::rename(kept, path(0));
    expect_refused(path(1), "says that it is rank 1 of 3");
}

TEST_F(Checkpoints, AnotherModelIsRefused) {
    std::vector<Parameter> other = kTestParameters;
    other[0].elements = 6;
    expect_refused(path(0), "has 'a' with 7 elements, here it has 6", other);
    other[0].elements = 8;
    expect_refused(path(0), "has 'a' with 7 elements, here it has 8", other);
    other = kTestParameters;
    other[0].name = "c";
    expect_refused(path(0), "has 'a', which is no parameter here", other);
    other = kTestParameters;
    other.push_back({"c", 1});
    expect_refused(path(1), "none has element 0 of 'c'", other);
    other = kTestParameters;
    other[1].trainable = false;
    expect_refused(path(0), "has 'b' trainable, here it is not", other);
    other = kTestParameters;
    other[2] = {"frozen", 3};
    expect_refused(path(0), "has 'frozen' frozen, here it is not", other);
}

// No rank is left waiting for the one that could not write: the world would time out.
TEST_F(Checkpoints, OneRankThatCannotWriteIsAnErrorOnAll) {
    collectives::run_ranks(3, [&](collectives::Communicator& world) {
        TestRank rank(world);
        try {
            rank.trainer().save(world.rank() == 1 ? folder_ / "nowhere" : folder_);
            ADD_FAILURE() << "saved";
        } catch (const BadCheckpoint& error) {
            const std::string message = error.what();
            EXPECT_NE(message.find("No such file"), std::string::npos) << message;
            EXPECT_EQ(message.starts_with("rank 1 could not write: "), world.rank() != 1);
        }
        rank.steps(1);  // the run itself can go on
    });
}

}  // namespace
}  // namespace zeroproof::reference
