// `zeroproof fuzz` as a user runs it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/program_run.h"
#include "harness/temporary_folder.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {
namespace {

Ran fuzz(const std::string& arguments) {
    return run_program(ZEROPROOF_PROGRAM, fmt::format("fuzz {}", arguments));
}

TEST(Fuzz, FindsNothingInTheReferenceAndWritesARecord) {
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "record.json").string();
    const Ran ran = fuzz(fmt::format("reference --seconds 0.2 --seed 3 --save {} --json {}",
                                     (folder.path() / "found").string(), file));
    EXPECT_EQ(ran.code, 0) << ran.output;
    EXPECT_NE(ran.output.find("0 failed, 0 groups"), std::string::npos) << ran.output;
    EXPECT_EQ(ran.output.find('\r'), std::string::npos) << "progress in a pipe";
    EXPECT_TRUE(std::filesystem::is_empty(folder.path() / "found"));
    const scenarios::Json record = scenarios::parse_json(scenarios::read_text_file(file), file);
    EXPECT_EQ(record["schema"], "zeroproof.fuzz/1");
    EXPECT_EQ(record["seed"], 3);
    EXPECT_GT(record["programs"], 0);
    EXPECT_GT(record["judged"]["GRADIENT.MEAN"], 0);
    EXPECT_TRUE(record["first_failure_after_seconds"].is_null());
}

TEST(Fuzz, OneProgramByItsNumber) {
    const Ran ran = fuzz("reference --seed 3 --only 41");
    EXPECT_EQ(ran.code, 0) << ran.output;
    EXPECT_NE(ran.output.find("1 program in"), std::string::npos) << ran.output;
}

TEST(Fuzz, SaysWhatIsWrong) {
    EXPECT_EQ(fuzz("reference --stage 4").code, 2);
    EXPECT_EQ(fuzz("nobody").code, 2);
    EXPECT_EQ(fuzz("--run 'true'").code, 2);
    EXPECT_EQ(fuzz("reference --json /no/such/folder/record.json").code, 2);
    EXPECT_EQ(fuzz("reference --save /dev/null/folder").code, 2);
}

TEST(Fuzz, ACommandThatCannotRunIsNoConformance) {
    const Ran ran = fuzz("--run 'exit 1; {ranks} {cases} {results}' --seconds 0.1");
    EXPECT_EQ(ran.code, 4) << ran.output;
    EXPECT_NE(ran.output.find("could not be run"), std::string::npos) << ran.output;
}

}  // namespace
}  // namespace zeroproof::harness
