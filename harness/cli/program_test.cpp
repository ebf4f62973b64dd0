// The program as a user runs it: exit codes, messages, and files that are whole or not there.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>
#include <string>

#include "harness/program_run.h"
#include "harness/temporary_folder.h"

namespace zeroproof::harness {
namespace {

namespace fs = std::filesystem;

Ran run(const std::string& arguments) {
    return run_program(ZEROPROOF_PROGRAM, arguments);
}

std::string text_of(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

fs::path file_with(const TemporaryFolder& folder, const std::string& text) {
    const fs::path file = folder.path() / "input.json";
    std::ofstream(file) << text;
    return file;
}

constexpr const char* kSlice = "verify reference --filter 'accumulation/*ranks=2,*bf16*'";

TEST(Program, ConformingRunEndsWithZeroAndWritesEveryReport) {
    const TemporaryFolder folder;
    const std::string out = folder.path().string();
    const Ran ran =
        run(fmt::format("{} --json {}/r.json --junit {}/r.xml --csv {}/r.csv "
                        "--markdown {}/r.md",
                        kSlice, out, out, out, out));
    EXPECT_EQ(ran.code, 0) << ran.output;
    EXPECT_NE(ran.output.find("12 configurations"), std::string::npos) << ran.output;
    EXPECT_EQ(ran.output.find('\x1b'), std::string::npos) << "colour in a pipe";
    EXPECT_EQ(ran.output.find('\r'), std::string::npos) << "progress in a pipe";
    const auto record = nlohmann::json::parse(text_of(folder.path() / "r.json"));
    EXPECT_EQ(record.at("cases").size(), 12u);
    EXPECT_EQ(record.at("exit_code"), 0);
    pugi::xml_document junit;
    EXPECT_TRUE(junit.load_file((folder.path() / "r.xml").c_str()));
    EXPECT_FALSE(text_of(folder.path() / "r.csv").empty());
    EXPECT_NE(text_of(folder.path() / "r.md").find("12 configurations"), std::string::npos);
}

TEST(Program, UsageErrorsEndWithTwoAndSayWhatToDo) {
    const struct {
        const char* arguments;
        const char* message;
    } cases[] = {
        {"", "subcommand"},
        {"verify reference --stage 4", "4"},
        {"verify reference --ranks 0", "0"},
        {"verify reference --ranks -1", "-1"},
        {"verify nothing-like-it", "known are: reference,"},
        {"verify reference --clause GRADIENT.MEEN", "GRADIENT.MEAN"},
        {"verify reference --filter no-such-case", "--list"},
        {"verify reference --cases /nowhere/cases.json", "/nowhere/cases.json"},
        {"verify reference --expect /nowhere/expect.json", "/nowhere/expect.json"},
        {"verify reference --json /nowhere/record.json", "/nowhere/record.json"},
        {"verify reference --unknown-option", "--unknown-option"},
        {"explain NO.SUCH", "zeroproof clauses"},
        {"mutants --catalogue /nowhere/mutants.json", "/nowhere/mutants.json"},
    };
    for (const auto& [arguments, message] : cases) {
        const Ran ran = run(arguments);
        EXPECT_EQ(ran.code, 2) << arguments << "\n" << ran.output;
        EXPECT_NE(ran.output.find(message), std::string::npos) << arguments << "\n" << ran.output;
    }
}

TEST(Program, BadCaseFilesNameTheFileAndThePlace) {
    const std::string good = R"({"family": "f", "purpose": "p", "program": ["window"],)";
    const struct {
        std::string text;
        const char* place;
    } cases[] = {
        {"{\"family\": ", "line 1"},
        {"[]", "expected an object"},
        {good + R"("parameters": [{"name": "a", "shape": [-1]}]})", "/parameters/0/shape/0"},
        {good + R"("parameters": [{"name": "a", "shape": [1000000000000000]}]})",
         "/parameters/0/shape/0"},
        {good + R"("parameters": [{"name": "a", "shape": [1], "colour": 1}]})", "colour"},
        {good + R"("parameters": [{"name": "a", "shape": [1]}, {"name": "a", "shape": [1]}]})",
         "/parameters/1/name"},
        {good + R"("stage": 4, "parameters": [{"name": "a", "shape": [1]}]})", "/stage"},
        {good + R"("ranks": 0, "parameters": [{"name": "a", "shape": [1]}]})", "/ranks"},
        {good + R"("groups": [], "parameters": [{"name": "a", "shape": [1]}]})", "/groups"},
        {good + R"("ranks": 4, "precision": "fp16", "loss_scale": {"initial": 65536},
                   "parameters": [{"name": "a", "shape": [1]}]})",
         "do not fit into fp16"},
        {good + R"("twin": {"differs_in": "bucket size", "changes": {}},
                   "parameters": [{"name": "a", "shape": [1]}]})",
         "does not differ"},
        {good + R"("twin": {"differs_in": "stage", "changes": {"stage": 1,
                   "parameters": [{"name": "b", "shape": [1]}]}},
                   "parameters": [{"name": "a", "shape": [1]}]})",
         "other parameters"},
        {good + R"("parameters": )" + std::string(100'000, '[') + std::string(100'000, ']') + "}",
         "deep"},
        {good + R"("precision": "fp8", "parameters": [{"name": "a", "shape": [1]}]})", "fp8"},
    };
    for (const auto& [text, place] : cases) {
        const TemporaryFolder folder;
        const fs::path file = file_with(folder, text);
        const Ran ran = run(fmt::format("verify reference --cases {} --json {}", file.string(),
                                        (folder.path() / "r.json").string()));
        EXPECT_EQ(ran.code, 2) << text << "\n" << ran.output;
        EXPECT_NE(ran.output.find(file.string()), std::string::npos) << ran.output;
        EXPECT_NE(ran.output.find(place), std::string::npos) << text << "\n" << ran.output;
        EXPECT_FALSE(fs::exists(folder.path() / "r.json"));
    }
}

TEST(Program, ExpectationsAreStrict) {
    const TemporaryFolder folder;
    const fs::path unexpected_pass = file_with(
        folder,
        R"({"expectations": [{"clause": "GRADIENT.ACCUMULATION", "cases": "accumulation/*",
                              "fails_because": "a known fault"}]})");
    Ran ran = run(fmt::format("{} --expect {}", kSlice, unexpected_pass.string()));
    EXPECT_EQ(ran.code, 1) << ran.output;
    EXPECT_NE(ran.output.find("was expected to fail"), std::string::npos) << ran.output;
    const fs::path stale =
        file_with(folder, R"({"expectations": [{"clause": "GRADIENT.MEAN", "cases": "gone/*",
                                      "fails_because": "a known fault"}]})");
    ran = run(fmt::format("{} --expect {}", kSlice, stale.string()));
    EXPECT_EQ(ran.code, 1) << ran.output;
    EXPECT_NE(ran.output.find("matches no case"), std::string::npos) << ran.output;
}

TEST(Program, WhatWasNotExercisedIsInconclusive) {
    const Ran ran =
        run("verify reference --clause RACE.INPUT --filter 'hostile/*stage=0,ranks=1,*'");
    EXPECT_EQ(ran.code, 0) << ran.output;
    const Ran none =
        run("verify reference --clause WEIGHT.REPLICAS --filter 'checkpoint/*ranks=1,"
            "resume_ranks=1,*'");
    EXPECT_EQ(none.code, 3) << none.output;
}

TEST(Program, ListsExplainsAndReports) {
    EXPECT_NE(run("verify --list --filter tied").output.find("tied/stage=3"), std::string::npos);
    EXPECT_NE(run("explain TIED.SUM").output.find("sum over its uses"), std::string::npos);
    EXPECT_NE(run("clauses").output.find("LIVENESS.END"), std::string::npos);
    EXPECT_EQ(run("doctor").code, 0);
    EXPECT_EQ(run("version").code, 0);
    EXPECT_NE(run("verify --help").output.find("Example: zeroproof verify"), std::string::npos);
}

}  // namespace
}  // namespace zeroproof::harness
