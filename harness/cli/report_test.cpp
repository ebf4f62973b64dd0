// `zeroproof report` as a user runs it, with scripts in the place of Python: what it draws is
// tested in reports/tests.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/bench/sample_record.h"
#include "harness/program_run.h"
#include "harness/temporary_folder.h"

namespace zeroproof::harness {
namespace {

namespace fs = std::filesystem;

// Made up, by reports/tests/make_training_sample.py.
std::string training_file(const std::string& name) {
    return std::string(ZEROPROOF_SOURCE_DIR) + "/reports/tests/data/training-" + name + ".json";
}

Ran report(const std::string& arguments) {
    return run_program(ZEROPROOF_PROGRAM, fmt::format("report {}", arguments));
}

class ReportCommand : public testing::Test {
  protected:
    // An interpreter that runs this script of a shell.
    std::string interpreter(const std::string& script) {
        const fs::path file = folder_.path() / "python";
        std::ofstream(file) << "#!/bin/sh\n" << script << "\n";
        fs::permissions(file, fs::perms::owner_all);
        return file.string();
    }
    std::string page() const { return (folder_.path() / "page.html").string(); }

    TemporaryFolder folder_;
};

TEST_F(ReportCommand, HandsCheckedCopiesToPython) {
    const std::string python = interpreter(R"(
        echo "module $2, page $3, $4, $5"
        echo "path $PYTHONPATH"
        grep -c '"format": "zeroproof bench record"' "${4#--record=}")");
    const Ran ran =
        report(fmt::format("{} --output {} --python {}", sample_file("1x4"), page(), python));
    EXPECT_EQ(ran.code, 0) << ran.output;
    EXPECT_NE(ran.output.find("module zeroproof_report, page " + page()), std::string::npos)
        << ran.output;
    EXPECT_NE(ran.output.find("--name=" + sample_file("1x4")), std::string::npos) << ran.output;
    EXPECT_NE(ran.output.find("/reports"), std::string::npos) << ran.output;
    EXPECT_EQ(ran.output.find("--record=" + sample_file("1x4")), std::string::npos) << ran.output;
    EXPECT_NE(ran.output.find("\n1\n"), std::string::npos) << ran.output;
}

TEST_F(ReportCommand, HandsCheckedRecordsOfTrainingToPython) {
    const std::string python = interpreter(R"(
        grep -c '"format": "zeroproof training"' "${4#--record=}" "${6#--record=}"
        echo "$5 $7")");
    const Ran ran = report(fmt::format("{} {} --output {} --python {}", training_file("stage0"),
                                       training_file("recompute"), page(), python));
    EXPECT_EQ(ran.code, 0) << ran.output;
    EXPECT_NE(ran.output.find("/0.json:1\n"), std::string::npos) << ran.output;
    EXPECT_NE(ran.output.find("/1.json:1\n"), std::string::npos) << ran.output;
    EXPECT_NE(ran.output.find(fmt::format("--name={} --name={}", training_file("stage0"),
                                          training_file("recompute"))),
              std::string::npos)
        << ran.output;
}

TEST_F(ReportCommand, RefusesRecordsOfTrainingThatDoNotDo) {
    const std::string python = interpreter("echo ran");
    const std::string good = scenarios::read_text_file(training_file("stage1"));
    const auto changed = [&](const std::string& name, const auto& change) {
        scenarios::Json json = scenarios::Json::parse(good);
        change(json);
        const std::string file = (folder_.path() / name).string();
        std::ofstream(file) << json;
        return file;
    };
    const std::string truncated = (folder_.path() / "truncated.json").string();
    std::ofstream(truncated) << good.substr(0, good.size() / 2);
    const struct {
        std::string records;
        const char* message;
    } cases[] = {
        {truncated, "truncated.json: "},
        {changed("version.json", [](auto& json) { json["version"] = 2; }),
         "version.json: /version: this program reads version 1"},
        {changed("length.json", [](auto& json) { json["timeline"]["master"].erase(0); }),
         "length.json: /timeline/master: "},
        {changed("ranks.json", [](auto& json) { json["by_rank"].erase(0); }),
         "ranks.json: /by_rank/0/rank: "},
        {training_file("stage1") + " " + sample_file("1x4"), "a report is of one kind"},
        {sample_file("1x4") + " " + training_file("stage1"), "a report is of one kind"},
    };
    for (const auto& [records, message] : cases) {
        const Ran ran = report(fmt::format("{} --output {} --python {}", records, page(), python));
        EXPECT_EQ(ran.code, 2) << records << "\n" << ran.output;
        EXPECT_NE(ran.output.find(message), std::string::npos) << ran.output;
        EXPECT_EQ(ran.output.find("\nran"), std::string::npos) << ran.output;
        EXPECT_FALSE(fs::exists(page()));
    }
}

TEST_F(ReportCommand, MakesAFolderForThePage) {
    const std::string python = interpreter("echo \"$3\"");
    const std::string folder = (folder_.path() / "some" / "where").string();
    const Ran ran =
        report(fmt::format("{} --output {} --python {}", sample_file("1x4"), folder, python));
    EXPECT_EQ(ran.code, 0) << ran.output;
    EXPECT_NE(ran.output.find(folder + "/report.html"), std::string::npos) << ran.output;
    EXPECT_TRUE(fs::is_directory(folder));
}

TEST_F(ReportCommand, NamesThePackagesThatAreMissing) {
    const struct {
        std::string python;
        const char* message;
    } cases[] = {
        {interpreter("printf 'there is no module matplotlib'; exit 3"), "module matplotlib"},
        {"/nowhere/python", "cannot run /nowhere/python"},
    };
    for (const auto& [python, message] : cases) {
        const Ran ran =
            report(fmt::format("{} --output {} --python {}", sample_file("1x4"), page(), python));
        EXPECT_EQ(ran.code, 2) << ran.output;
        for (const char* part : {message, "python3-matplotlib", "python3-jinja2", "--python"})
            EXPECT_NE(ran.output.find(part), std::string::npos) << ran.output;
        EXPECT_FALSE(fs::exists(page()));
    }
}

TEST_F(ReportCommand, ShowsWhatPythonSaysWhenItFails) {
    const std::string python = interpreter("echo 'Traceback: something' >&2; exit 1");
    const Ran ran =
        report(fmt::format("{} --output {} --python {}", sample_file("1x4"), page(), python));
    EXPECT_EQ(ran.code, 5) << ran.output;
    EXPECT_NE(ran.output.find("Traceback: something"), std::string::npos) << ran.output;
}

TEST_F(ReportCommand, RefusesRecordsAndPagesBeforePythonRuns) {
    const std::string python = interpreter("echo ran");
    const std::string verify = (folder_.path() / "verify.json").string();
    std::ofstream(verify) << R"({"record_version": 1, "subject": "reference"})";
    const struct {
        std::string arguments;
        const char* message;
    } cases[] = {
        {verify + " --output " + page(), "one of `zeroproof verify`"},
        {"/nowhere/r.json --output " + page(), "/nowhere/r.json"},
        {sample_file("1x4") + " --output /nowhere/page.html", "cannot write /nowhere/page.html"},
        {sample_file("1x4") + " --output /dev/null/folder", "cannot write /dev/null/folder"},
        {"", "record"},
    };
    for (const auto& [arguments, message] : cases) {
        const Ran ran = report(fmt::format("{} --python {}", arguments, python));
        EXPECT_EQ(ran.code, 2) << arguments << "\n" << ran.output;
        EXPECT_NE(ran.output.find(message), std::string::npos) << ran.output;
        EXPECT_EQ(ran.output.find("\nran"), std::string::npos) << ran.output;
    }
}

}  // namespace
}  // namespace zeroproof::harness
