// Engines in shared objects, judged by the program as a whole.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "harness/program_run.h"
#include "harness/temporary_folder.h"

namespace zeroproof::harness {
namespace {

Ran run(const std::string& arguments) {
    return run_program(ZEROPROOF_PROGRAM, arguments);
}

// Lines are wrapped for the terminal.
std::string unwrapped(const std::string& text) {
    std::string joined;
    for (const char letter : text) {
        const bool is_space = letter == ' ' || letter == '\n';
        if (!is_space)
            joined += letter;
        else if (!joined.empty() && joined.back() != ' ')
            joined += ' ';
    }
    return joined;
}

std::string engine(const std::string& name) {
    return fmt::format("{}/{}.so", ZEROPROOF_ENGINES, name);
}

// Two short cases on two ranks.
class Plugin : public testing::Test {
  protected:
    Plugin() {
        std::ofstream(cases_) << R"({"family": "short", "purpose": "One window.", "stage": 1,
            "ranks": 2, "parameters": [{"name": "a", "shape": [5]}],
            "program": ["micro_step", "step"], "sweep": {"seed": [1, 2]}})";
    }
    Ran verify(const std::string& name) const {
        Ran ran =
            run(fmt::format("verify {} --cases {} --timeout 2", engine(name), cases_.string()));
        ran.output = unwrapped(ran.output);
        return ran;
    }

    TemporaryFolder folder_;
    std::filesystem::path cases_ = folder_.path() / "cases.json";
};

TEST_F(Plugin, ConformingEngineConformsInEveryFamily) {
    const Ran ran = run(fmt::format("verify {} --ranks 1,2,3 --sample 3", engine("stage1")));
    EXPECT_EQ(ran.code, 0) << ran.output;
    EXPECT_NE(ran.output.find("stage1.c: conforms"), std::string::npos) << ran.output;
}

TEST_F(Plugin, WrongTwinFailsTheClauseThatNamesItsFault) {
    const Ran ran = run(fmt::format("verify {} --ranks 2 --filter sizes", engine("stage1_wrong")));
    EXPECT_EQ(ran.code, 1) << ran.output;
    EXPECT_NE(ran.output.find("FAIL GRADIENT.MEAN"), std::string::npos) << ran.output;
    EXPECT_NE(ran.output.find("a sum in place of a mean"), std::string::npos) << ran.output;
    EXPECT_NE(ran.output.find("run again   zeroproof verify " + engine("stage1_wrong")),
              std::string::npos)
        << ran.output;
}

TEST_F(Plugin, WhatCannotBeJudgedEndsWithFourAndSaysWhatToDo) {
    const struct {
        const char* name;
        const char* message;
    } engines[] = {
        {"exports_nothing", "exports no function zeroproof_get_engine"},
        {"of_another_version", "is for version 7 of the interface"},
        {"knows_no_version", "build it against harness/plugin/zeroproof.h"},
        {"has_no_table_size", "set struct_size"},
        {"has_no_functions", "no function create"},
        {"has_a_nonsense_table", "describe-plugin"},
        {"has_no_name", "there is no name"},
        {"says_nonsense", "/stages/0"},
        {"crashes_on_loading", "the process that loads and describes it"},
        {"crashes_on_describing", "the process that loads and describes it"},
    };
    for (const auto& [name, message] : engines) {
        const Ran ran = verify(name);
        EXPECT_EQ(ran.code, 4) << name << "\n" << ran.output;
        EXPECT_NE(ran.output.find(message), std::string::npos) << name << "\n" << ran.output;
    }
    const Ran text = run(fmt::format("verify {}", cases_.string()));
    EXPECT_EQ(text.code, 4) << text.output;
    EXPECT_NE(text.output.find("expected a shared object"), std::string::npos) << text.output;
    const Ran nothing = run("verify ./there-is-no-such.so");
    EXPECT_EQ(nothing.code, 2) << nothing.output;
    EXPECT_NE(nothing.output.find("docs/plugin.md"), std::string::npos) << nothing.output;
}

TEST_F(Plugin, WhatBreaksTheInterfaceFailsAndIsNamed) {
    const struct {
        const char* name;
        const char* message;
    } engines[] = {
        {"gives_no_state", "create has returned ZEROPROOF_OK and no state"},
        {"refuses_on_one_rank", "returned 0 on rank 0 and 1 on rank 1"},
        {"calls_a_host_of_before", "the host that was given is not that of this rank"},
        {"crashes", "in this case"},
        {"exits", "ended with exit code"},
        {"hangs", "no result within 2 s"},
        {"releases_twice", "is released twice"},
        {"releases_foreign", "is no memory that allocate() has given"},
        {"one_rank_alone", "no rank can go on"},
        {"other_counts", "started all_reduce of 2 fp32"},
        {"endless_count", "elements is too large"},
        {"waits_twice", "is no request in flight"},
        {"other_handle", "42 is no communicator of this rank"},
        {"other_host", "the host that was given is not that of this rank"},
        {"ignores_errors", "42 is no communicator of this rank"},
        {"calls_from_another_thread", "called allocate outside of its own functions"},
        {"other_unit", "there is no unit 18446744073709551615"},
        {"no_weights", "the weights of a are missing"},
        {"backward_first", "it is for what follows begin_backward"},
        {"other_status", "it returned 77 and did not explain() why"},
        {"other_category", "category -1 of memory does not exist"},
        {"all_memory", "out of memory in the device of rank"},
        {"endless_slices", "slices of 5 elements"},
        {"other_parameter", "of parameter 999"},
        {"writes_beyond", "has written beyond"},
        {"throws", "has thrown: no good"},
    };
    for (const auto& [name, message] : engines) {
        const Ran ran = verify(name);
        EXPECT_EQ(ran.code, 1) << name << "\n" << ran.output;
        EXPECT_NE(ran.output.find(message), std::string::npos) << name << "\n" << ran.output;
        EXPECT_NE(ran.output.find("FAIL LIVENESS.END"), std::string::npos) << name << "\n"
                                                                           << ran.output;
    }
}

}  // namespace
}  // namespace zeroproof::harness
