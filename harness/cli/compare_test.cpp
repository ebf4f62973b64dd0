// `zeroproof compare` as a user runs it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "harness/bench/sample_record.h"
#include "harness/program_run.h"
#include "harness/temporary_folder.h"

namespace zeroproof::harness {
namespace {

Ran compare(const std::string& arguments) {
    return run_program(ZEROPROOF_PROGRAM, fmt::format("compare {}", arguments));
}

class CompareCommand : public testing::Test {
  protected:
    // The sample with the times of all results stretched; only the first so many repeats.
    std::string changed(const std::string& name, double factor, std::size_t repeats = 7) {
        BenchRecord record = sample_record("1x4");
        const auto change = [&](Timing& timing) {
            timing.seconds.resize(repeats);
            timing.slowest_rank.resize(repeats);
            for (double& seconds : timing.seconds) seconds *= factor;
        };
        record.operations.resize(4);
        record.stages.resize(1);
        for (OperationResult& result : record.operations) change(result.timing);
        change(record.stages[0].timing);
        const std::string file = (folder_.path() / name).string();
        write_bench_json(file, record);
        return file;
    }

    TemporaryFolder folder_;
};

TEST_F(CompareCommand, EndsWithOneIfSomethingIsSlower) {
    const std::string older = changed("old.json", 1);
    const std::string newer = changed("new.json", 1.5);
    const Ran slower = compare(older + " " + newer);
    EXPECT_EQ(slower.code, 1) << slower.output;
    EXPECT_NE(slower.output.find("5 slower, 0 faster"), std::string::npos) << slower.output;
    const Ran faster = compare(newer + " " + older);
    EXPECT_EQ(faster.code, 0) << faster.output;
    EXPECT_NE(faster.output.find("0 slower, 5 faster"), std::string::npos) << faster.output;
    const Ran same = compare(older + " " + older);
    EXPECT_EQ(same.code, 0) << same.output;
    EXPECT_NE(same.output.find("5 without a difference"), std::string::npos) << same.output;
}

TEST_F(CompareCommand, EndsWithThreeIfNothingCanBeTold) {
    const Ran few = compare(changed("old.json", 1, 3) + " " + changed("new.json", 2, 3));
    EXPECT_EQ(few.code, 3) << few.output;
    EXPECT_NE(few.output.find("Too few repeats: with 6"), std::string::npos) << few.output;
    const Ran coarse =
        compare("--level 0.4 " + changed("old.json", 1, 3) + " " + changed("new.json", 2, 3));
    EXPECT_EQ(coarse.code, 1) << coarse.output;
    BenchRecord empty = sample_record("1x4");
    empty.operations.clear();
    empty.stages.clear();
    write_bench_json(folder_.path() / "empty.json", empty);
    const Ran none =
        compare(changed("old.json", 1) + " " + (folder_.path() / "empty.json").string());
    EXPECT_EQ(none.code, 3) << none.output;
    EXPECT_NE(none.output.find("No result stands in both"), std::string::npos) << none.output;
}

TEST_F(CompareCommand, RefusesOtherMachinesUnlessTold) {
    const std::string files = sample_file("1x4") + " " + sample_file("2x2");
    const Ran refused = compare(files);
    EXPECT_EQ(refused.code, 2) << refused.output;
    EXPECT_NE(refused.output.find("the topology was 1x4"), std::string::npos) << refused.output;
    EXPECT_NE(refused.output.find("--any-machine"), std::string::npos) << refused.output;
    const Ran told = compare("--any-machine --level 0.05 " + files);
    EXPECT_EQ(told.code, 1) << told.output;
    EXPECT_NE(told.output.find("Note: the topology was 1x4"), std::string::npos) << told.output;
}

TEST_F(CompareCommand, NamesTheFileThatCannotBeRead) {
    const std::string good = sample_file("1x4");
    const std::string verify = (folder_.path() / "verify.json").string();
    std::ofstream(verify) << R"({"record_version": 1, "subject": "reference"})";
    const struct {
        std::string arguments;
        std::string message;
    } cases[] = {
        {good, "new"},
        {good + " /nowhere/new.json", "/nowhere/new.json"},
        {"/nowhere/old.json " + good, "/nowhere/old.json"},
        {verify + " " + good, "verify.json: /: this is no record of `zeroproof bench`"},
        {good + " " + good + " --level 2", "--level"},
    };
    for (const auto& [arguments, message] : cases) {
        const Ran ran = compare(arguments);
        EXPECT_EQ(ran.code, 2) << arguments << "\n" << ran.output;
        EXPECT_NE(ran.output.find(message), std::string::npos) << ran.output;
    }
}

}  // namespace
}  // namespace zeroproof::harness
