// zeroproof train as a user runs it, and what a user can get wrong.
#include "harness/cli/train.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>

#include "harness/process/child.h"
#include "harness/program_run.h"
#include "harness/temporary_folder.h"
#include "harness/train/train_json_read.h"
#include "memory/sanitizers.h"
#include "reference/checkpoint/whole_file.h"

namespace zeroproof::harness {
namespace {

namespace fs = std::filesystem;

class TrainProgram : public testing::Test {
  protected:
    Ran train(const std::string& arguments, const std::string& model = "gpt2-tiny") const {
        return run_program(ZEROPROOF_PROGRAM, "train --model " + model + " " + arguments);
    }
    std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
    void write(const std::string& name, const std::string& text) const {
        std::ofstream(path(name)) << text;
    }
    TrainRecord read_record(const std::string& name) const {
        const std::string file = path(name);
        return read_train_json(scenarios::parse_json(scenarios::read_text_file(file), file), file);
    }
    void expect_refused(const std::string& arguments, const std::string& why,
                        const std::string& model = "gpt2-tiny") const {
        const Ran ran = train(arguments, model);
        EXPECT_EQ(ran.code, 2) << ran.output;
        EXPECT_NE(ran.output.find(why), std::string::npos) << ran.output;
    }

    TemporaryFolder folder_;
};

TEST_F(TrainProgram, LowersTheLossUnderEachStageAndBothModels) {
    for (const char* model : {"gpt2-tiny", "llama-tiny"})
        for (int stage = 0; stage <= 3; ++stage) {
            const Ran ran =
                run_program(ZEROPROOF_PROGRAM,
                            fmt::format("train --model {} --stage {} --steps 30", model, stage));
            EXPECT_EQ(ran.code, 0) << ran.output;
            const std::size_t at = ran.output.find("loss 5.5");
            ASSERT_NE(at, std::string::npos) << ran.output;
            const std::size_t last = ran.output.rfind("-> 4.");
            EXPECT_NE(last, std::string::npos) << ran.output;
        }
}

TEST_F(TrainProgram, TextsThatAreNoneAreRefused) {
    write("empty", "");
    write("short", "thirty-two bytes are one too few");
    expect_refused("--data " + path("nowhere"), "there is no such file");
    expect_refused("--data " + folder_.path().string(), "is a folder");
    expect_refused("--data " + path("empty"), "is empty");
    expect_refused("--data " + path("short"), "has 32 bytes; one sample of this model takes 33");
}

TEST_F(TrainProgram, WhatDoesNotFitTogetherIsRefused) {
    expect_refused("--tensor-parallel 3", "does not divide the model's key and value heads of 4");
    expect_refused("--partition-activations --recompute 1", "needs --recompute, and");
    expect_refused("--offload-activations", "needs --recompute");
    expect_refused("", "known is: gpt2-1.5b, gpt2-10m", "nothing-known");
    expect_refused("--checkpoint /proc/nowhere", "cannot write /proc/nowhere: ");
}

TEST_F(TrainProgram, ACapacityTooSmallSaysWhatWasAskedWhatIsFreeAndWhatWouldFit) {
    const Ran ran = train("--steps 1 --capacity 1200K");
    EXPECT_EQ(ran.code, 4) << ran.output;
    for (const char* part : {"bytes asked for as", "of 1228800 bytes are live",
                             "This run takes 1302784 bytes", "--stage 1 takes 1164032 bytes"})
        EXPECT_NE(ran.output.find(part), std::string::npos) << part << " in " << ran.output;
}

TEST_F(TrainProgram, GoesOnAtAnotherStageAndNumberOfRanks) {
    const std::string run = path("run");
    const Ran whole = train("--stage 1 --ranks 2 --batch 4 --steps 20");
    EXPECT_EQ(train("--stage 2 --ranks 4 --batch 2 --steps 10 --checkpoint " + run).code, 0);
    const Ran rest = train("--stage 3 --ranks 1 --batch 8 --steps 20 --resume " + run);
    EXPECT_EQ(rest.code, 0) << rest.output;
    const auto last_loss = [](const Ran& ran) {
        const std::size_t at = ran.output.rfind("-> ");
        return std::stod(ran.output.substr(at + 3));
    };
    // The sums over ranks are in another order.
    EXPECT_NEAR(last_loss(rest), last_loss(whole), 1e-3);
    const Ran nothing =
        train("--batch 8 --ranks 1 --steps 20 --resume " + run + " --json " + path("nothing.json"));
    EXPECT_EQ(nothing.code, 0) << nothing.output;
    EXPECT_NE(nothing.output.find("is of step 20: with --steps 20 nothing is left to do"),
              std::string::npos)
        << nothing.output;
    EXPECT_TRUE(read_record("nothing.json").by_rank.empty());
    expect_refused("--ranks 1 --batch 4 --resume " + run, "must stay the same");
    expect_refused("--batch 4 --resume " + run, "is of a run whose family", "llama-tiny");
}

TEST_F(TrainProgram, RunsCutOverTensorParallelRanksGoOnToo) {
    const std::string cut = "--tensor-parallel 2 --batch 4 ";
    const std::string run = path("run");
    EXPECT_EQ(train(cut + "--steps 4 --checkpoint " + run).code, 0);
    EXPECT_TRUE(fs::exists(path("run/step-00000004/tensor-1-of-2/rank-00001.zpck")));
    expect_refused("--batch 4 --resume " + run, "tensor_parallel is 2, that of this one is 1");
    expect_refused(cut + "--steps 6 --checkpoint " + run, "step-00000004: is later than step 0");
    const Ran whole = train(cut + "--stage 3 --steps 8");
    const Ran rest = train(cut + "--stage 3 --steps 8 --resume " + run);
    EXPECT_EQ(rest.code, 0) << rest.output;
    const auto end_of = [](const Ran& ran) { return ran.output.substr(ran.output.find("-> "), 9); };
    EXPECT_EQ(end_of(rest), end_of(whole));
}

// Killed at any moment, again and again, a run that goes on from what it has saved comes to the
// bits of one that nobody disturbed. Of two tensor-parallel ranks, so that a checkpoint is of two
// parts.
TEST_F(TrainProgram, KilledAtAnyMomentItGoesOnFromTheLastCheckpoint) {
    constexpr int kKills = 12;
    const std::string options =
        "--tensor-parallel 2 --stage 3 --batch 1 --steps 60 --checkpoint-every 1 ";
    const std::string killed = path("killed");
    const auto has_checkpoint = [&] {
        std::error_code none;
        for (const auto& entry : fs::directory_iterator(killed, none))
            if (entry.path().extension().empty()) return true;
        return false;
    };
    std::vector<std::string> command{ZEROPROOF_PROGRAM, "train", "--model", "gpt2-tiny"};
    std::istringstream words(options);
    for (std::string word; words >> word;) command.push_back(word);
    std::mt19937 random(5);
    std::uniform_int_distribution<int> milliseconds(20, 200);
    int ended_by_kill = 0;
    for (int kill = 0; kill < kKills; ++kill) {
        std::vector<std::string> arguments = command;
        arguments.emplace_back(has_checkpoint() ? "--resume" : "--checkpoint");
        arguments.push_back(killed);
        Child child(arguments, folder_.path(), path("output"));
        std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds(random)));
        const std::optional<ChildEnd> ended = child.poll();
        child.kill();
        if (!ended)
            ++ended_by_kill;
        else
            EXPECT_TRUE(ended->exited_with(0)) << scenarios::read_text_file(path("output"));
    }
    EXPECT_GT(ended_by_kill, 0);
    const Ran last = train(options + (has_checkpoint() ? "--resume " : "--checkpoint ") + killed);
    EXPECT_EQ(last.code, 0) << last.output;
    ASSERT_EQ(train(options + "--checkpoint " + path("whole")).code, 0);
    std::size_t files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(path("whole/step-00000060"))) {
        if (!entry.is_regular_file()) continue;
        const fs::path other = fs::path(killed) / fs::relative(entry.path(), path("whole"));
        EXPECT_TRUE(reference::read_whole(entry.path()) == reference::read_whole(other)) << other;
        ++files;
    }
    EXPECT_EQ(files, 5u);
}

// What the system has given the process, beside what the ledgers of all ranks hold at their peaks:
// within 2 % and a constant, which is the program, its threads and the libraries' own buffers.
TEST_F(TrainProgram, TheProcessTakesWhatTheLedgersSay) {
    if (memory::kAddressSanitizer || memory::kThreadSanitizer)
        GTEST_SKIP() << "A sanitizer's own memory is the process's too.";
    constexpr double kConstantBytes = 64 << 20;
    for (const int stage : {0, 3}) {
        const Ran ran = train(
            fmt::format("--stage {} --steps 2 --batch 4 --json {}", stage, path("record.json")),
            "gpt2-10m");
        ASSERT_EQ(ran.code, 0) << ran.output;
        const TrainRecord record = read_record("record.json");
        double ledgers = 0;
        for (const RankMemory& rank : record.by_rank)
            ledgers += static_cast<double>(*std::ranges::max_element(rank.peak_bytes));
        const auto process = static_cast<double>(record.resident_peak_bytes) -
                             static_cast<double>(record.resident_before_bytes);
        EXPECT_LE(process, 1.02 * ledgers + kConstantBytes) << "stage " << stage;
        EXPECT_GE(process, 0.98 * ledgers) << "stage " << stage;
    }
}

TEST_F(TrainProgram, DamagedCheckpointsAreRefusedAndTheOneBeforeIsNamed) {
    const std::string run = path("run");
    ASSERT_EQ(train("--steps 4 --checkpoint-every 2 --checkpoint " + run).code, 0);
    const fs::path file = fs::path(run) / "step-00000004" / "rank-00001.zpck";
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(1000);
    stream.put('\x55');
    stream.close();
    expect_refused("--steps 6 --resume " + run, "step-00000002");
    const Ran ran = train("--steps 3 --resume " + run + "/step-00000002");
    EXPECT_EQ(ran.code, 0) << ran.output;
}

}  // namespace
}  // namespace zeroproof::harness
