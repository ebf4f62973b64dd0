// Which checkpoints a trainer refuses, and that it stays as it was.
#include "reference/checkpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>

#include "collectives/test_support.h"
#include "reference/checkpoint_file.h"
#include "reference/models/dot.h"
#include "reference/trainer.h"

namespace zeroproof::reference {
namespace {

namespace fs = std::filesystem;

class Terms : public LinearTerms {
  public:
    void initial_weights(std::size_t parameter, std::size_t begin,
                         std::span<float> values) const override {
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<float>(100 * parameter + begin + i);
    }
    bool terms(std::size_t, std::size_t, std::span<float> g) const override {
        for (std::size_t i = 0; i < g.size(); ++i) g[i] = static_cast<float>(i + 1);
        return true;
    }
};

const std::vector<Parameter> kParameters{{"a", 7}, {"b", 10}, {"frozen", 3, -1, false}};

// One rank's trainer, in buckets of 4 elements, so that each parameter is saved in several pieces.
class Rank {
  public:
    explicit Rank(collectives::Communicator& world, int stage = 2,
                  const std::vector<Parameter>& parameters = kParameters)
        : model_(parameters, {{"unit", {0, 1, 2}}}, terms_),
          gradients_(world.split(0, world.rank())),
          parameters_(world.split(0, world.rank())),
          control_(world.split(0, world.rank())),
          trainer_(model_, options(stage), {*gradients_, *parameters_, *control_}, space_) {}

    Trainer& trainer() { return trainer_; }
    void steps(int count) {
        for (int i = 0; i < count; ++i) {
            trainer_.forward();
            trainer_.backward();
            trainer_.step();
        }
    }
    // Everything that a checkpoint restores, of this rank. Collective.
    std::vector<float> state() {
        Stage& stage = trainer_.stage();
        std::vector<float> all{static_cast<float>(stage.progress().steps_taken)};
        const auto append = [&](std::span<const float> values) {
            all.insert(all.end(), values.begin(), values.end());
        };
        for (const Slice& slice : stage.owned()) {
            append(stage.master(slice));
            append(stage.momentum(slice));
            append(stage.variance(slice));
        }
        append(weights());
        return all;
    }
    std::vector<float> weights() {
        std::vector<float> all;
        for (std::size_t p = 0; p < model_.parameters().size(); ++p) {
            std::vector<float> values(model_.parameters()[p].elements);
            trainer_.stage().read_weights(p, values);
            all.insert(all.end(), values.begin(), values.end());
        }
        return all;
    }

  private:
    static Options options(int stage) {
        Options options;
        options.stage = stage;
        options.precision = Precision::bf16;
        options.groups.emplace_back();
        options.bucket_elements = 4;
        return options;
    }

    Terms terms_;
    DotModel model_;
    memory::Space space_{"device", memory::Space::kUnlimited, memory::Returned::reused};
    std::unique_ptr<collectives::Communicator> gradients_;
    std::unique_ptr<collectives::Communicator> parameters_;
    std::unique_ptr<collectives::Communicator> control_;
    Trainer trainer_;
};

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
            Rank rank(world);
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
                        const std::vector<Parameter>& parameters = kParameters) const {
        collectives::run_ranks(3, [&](collectives::Communicator& world) {
            Rank loads(world, 2, parameters);
            Rank does_not(world, 2, parameters);
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
        Rank rank(world);
        rank.steps(3);
        const std::vector<float> weights = rank.weights();
        if (world.rank() == 0) wanted = weights;
    });
    for (const int ranks : {1, 2, 3})
        for (const int stage : {0, 1, 2, 3})
            collectives::run_ranks(ranks, [&](collectives::Communicator& world) {
                Rank rank(world, stage);
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
    std::vector<Parameter> other = kParameters;
    other[0].elements = 6;
    expect_refused(path(0), "has 'a' with 7 elements, here it has 6", other);
    other[0].elements = 8;
    expect_refused(path(0), "has 'a' with 7 elements, here it has 8", other);
    other = kParameters;
    other[0].name = "c";
    expect_refused(path(0), "has 'a', which is no parameter here", other);
    other = kParameters;
    other.push_back({"c", 1});
    expect_refused(path(1), "none has element 0 of 'c'", other);
    other = kParameters;
    other[1].trainable = false;
    expect_refused(path(0), "has 'b' trainable, here it is not", other);
    other = kParameters;
    other[2] = {"frozen", 3};
    expect_refused(path(0), "has 'frozen' frozen, here it is not", other);
}

}  // namespace
}  // namespace zeroproof::reference
