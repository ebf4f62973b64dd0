// From the text of a family to its cases.
#include "suites/conformance/family.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "scenarios/json_reader.h"

namespace zeroproof::suites {
namespace {

// A family with one small parameter; `extra` is more JSON, and may not repeat a key.
std::string family(const std::string& extra,
                   const std::string& parameters = R"([{"name": "a", "shape": [2]}])",
                   const std::string& program = R"(["window"])") {
    return fmt::format(
        R"({{"family": "f", "purpose": "p", "parameters": {}, "program": {} {} {}}})", parameters,
        program, extra.empty() ? "" : ",", extra);
}
std::vector<Case> read(const std::string& text) {
    return read_family(text, "f.json");
}

TEST(Family, SweepMakesEveryCombinationOnceWithTheLastKeyFastest) {
    const auto cases = read(family(
        R"("sweep": {"stage": [1, 3], "clip_norm": {"off": 0, "half": 0.5}, "precision": ["bf16"]})"));
    ASSERT_EQ(cases.size(), 4u);
    const char* ids[] = {
        "f/stage=1,clip_norm=off,precision=bf16", "f/stage=1,clip_norm=half,precision=bf16",
        "f/stage=3,clip_norm=off,precision=bf16", "f/stage=3,clip_norm=half,precision=bf16"};
    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(cases[i].id, ids[i]);
        EXPECT_EQ(cases[i].stage, i < 2 ? 1 : 3);
        EXPECT_EQ(cases[i].clip_norm, i % 2 == 0 ? 0 : 0.5);
        EXPECT_EQ(cases[i].precision, Precision::bf16);
    }
    EXPECT_EQ(read(family("")).front().id, "f");
}

TEST(Family, SizesFollowRanksAndBucket) {
    const struct {
        const char* size;
        std::size_t elements;  // with 5 ranks and a bucket of 12
    } rows[] = {{"0", 0},         {"7", 7},          {R"("N")", 5},    {R"("N-1")", 4},
                {R"("N+1")", 6},  {R"("2N+1")", 11}, {R"("3B")", 36},  {R"("B-1")", 11},
                {R"("B+1")", 13}, {R"("N-5")", 0},   {R"("1B-12")", 0}};
    for (const auto& [size, elements] : rows) {
        const auto cases = read(family(R"("bucket_elements": 12, "sweep": {"ranks": [5]})",
                                       fmt::format(R"([{{"name": "a", "shape": [{}]}}])", size)));
        EXPECT_EQ(cases.front().parameters[0].elements(), elements) << size;
    }
}

TEST(Family, ProgramsExpandWindowsAndUnitsDefaultToParameters) {
    const Case c = read(family(R"("micro_steps": 2)", R"([{"name": "a", "shape": []}])",
                               R"(["micro_step", "zero_grad", "window", "reload", "evaluate"])"))
                       .front();
    using enum ActionKind;
    std::vector<ActionKind> kinds;
    for (const Action& action : c.program) kinds.push_back(action.kind);
    EXPECT_EQ(kinds,
              (std::vector{micro_step, zero_grad, micro_step, micro_step, step, reload, evaluate}));
    EXPECT_EQ(c.parameters[0].elements(), 1u);  // a scalar
    ASSERT_EQ(c.units.size(), 1u);
    EXPECT_EQ(c.units[0].parameters, std::vector<std::size_t>{0});
}

TEST(Family, ReversedParametersKeepUnitsAndInjectionsOnTheirNames) {
    const Case c = read(family(R"("reverse_parameters": true, "units": [["b"], ["a"]],
                                  "inject": [{"micro_step": 0, "rank": -1, "parameter": "b",
                                              "element": 1, "value": "-inf"}])",
                               R"([{"name": "a", "shape": [1]}, {"name": "b", "shape": [2]}])"))
                       .front();
    EXPECT_EQ(c.parameters[0].name, "b");
    EXPECT_EQ(c.units[0].parameters, std::vector<std::size_t>{0});
    EXPECT_EQ(c.units[1].parameters, std::vector<std::size_t>{1});
    EXPECT_EQ(c.injections[0].parameter, 0u);
    EXPECT_EQ(c.injections[0].value, -INFINITY);
}

TEST(Family, TwinDiffersInTheChangesAlone) {
    const auto cases = read(family(R"("sweep": {"stage": [2, 3], "ranks": [4]},
                                      "twin": {"differs_in": "stage", "changes": {"stage": 0}})"));
    ASSERT_EQ(cases.size(), 2u);
    for (const Case& c : cases) {
        ASSERT_EQ(c.twin.size(), 1u);
        EXPECT_EQ(c.twin_of, "stage");
        EXPECT_EQ(c.twin[0].stage, 0);
        EXPECT_EQ(c.twin[0].ranks, 4);
        EXPECT_EQ(c.twin[0].id, c.id + " (twin)");
        EXPECT_TRUE(c.twin[0].twin.empty());
    }
}

// Each must be an error that names the file, the place and the reason: none may become a default.
TEST(Family, EveryMistakeIsAnErrorThatNamesFileAndPlace) {
    const auto parameter = [](const std::string& json) { return family("", "[" + json + "]"); };
    const auto shape = [&](const std::string& size) {
        return parameter(fmt::format(R"({{"name": "a", "shape": [{}]}})", size));
    };
    const auto program = [](const std::string& json) {
        return family(R"("micro_steps": 2)", R"([{"name": "a", "shape": [2]}])", json);
    };
    const std::string injection =
        R"("inject": [{{"micro_step": {}, "rank": 0, "parameter": "{}", "element": {}, "value": "{}"}}])";
    const auto inject = [&](int micro_step, const char* name, int element, const char* value) {
        return family(fmt::format(fmt::runtime(injection), micro_step, name, element, value));
    };
    const struct {
        std::string text;
        const char* place_or_reason;
    } rows[] = {
        {"{", "parse error"},
        {"[]", "expected an object"},
        {R"({"purpose": "p"})", "\"family\" is missing"},
        {R"({"family": "f"})", "\"purpose\" is missing"},
        {family(R"("rank": 3)"), "unknown key \"rank\""},
        {family(R"("sweep": {"stgae": [1]})"), "unknown key \"stgae\""},
        {family(R"("stage": 1, "stage": 2)"), "\"stage\" stands twice"},
        {family(R"("stage": 4)"), "/stage: 4 is outside of 0 to 3"},
        {family(R"("stage": -1)"), "/stage: -1"},
        {family(R"("stage": "2")"), "/stage: expected an integer"},
        {family(R"("ranks": 0)"), "/ranks: 0"},
        {family(R"("ranks": 1000000000000000)"), "/ranks"},
        {family(R"("ranks": 2.0)"), "/ranks: expected an integer"},
        {family(R"("micro_steps": 0)"), "/micro_steps"},
        {family(R"("bucket_elements": 0)"), "/bucket_elements"},
        {family(R"("bucket_elements": 1000000000000000)"), "/bucket_elements"},
        {family(R"("precision": "fp8")"), "/precision: unknown \"fp8\""},
        {family(R"("clip_norm": -1)"), "/clip_norm: negative"},
        {family(R"("overlap": 1)"), "/overlap: expected true or false"},
        {family(R"("groups": [{"learning_rate": 0.1}])"), "/groups/0/learning_rate: not exact"},
        {family(R"("groups": [{"beta1": 1}])"), "/groups/0/beta1"},
        {family(R"("groups": [{"epsilon": 0}])"), "/groups/0/epsilon"},
        {family(R"("loss_scale": {"factor": 1})"), "/loss_scale: expected"},
        {family(R"("loss_scale": {"initial": 100})"), "/loss_scale: 100 is no power of two"},
        {family(R"("loss_scale": {"initial": 1e30})"), "/loss_scale"},
        {family(R"("precision": "bf16", "ranks": 63, "micro_steps": 5)"), "odd factor"},
        {family("", "[]"), "/parameters: no parameters"},
        {parameter(R"({"shape": [1]})"), "/parameters/0: the key \"name\""},
        {parameter(R"({"name": "", "shape": [1]})"), "/parameters/0/name"},
        {parameter(R"({"name": "a", "shape": [1]}, {"name": "a", "shape": [1]})"),
         "/parameters/1/name: two parameters are named \"a\""},
        {parameter(R"({"name": "a", "shape": [1], "group": 1})"), "/parameters/0/group"},
        {shape("-1"), "/parameters/0/shape/0: -1"},
        {shape("1000000000000000"), "/parameters/0/shape/0"},
        {shape("4096, 4096, 2"), "/parameters/0/shape: more than"},
        {shape(R"("N-2")"), "/parameters/0/shape/0: -1"},
        {shape(R"("2X")"), "\"2X\" is no size"},
        {shape(R"("N+")"), "\"N+\" is no size"},
        {shape(R"("N+-1")"), "\"N+-1\" is no size"},
        {shape(R"("N5")"), "\"N5\" is no size"},
        {shape(R"("0N")"), "\"0N\" is no size"},
        {shape(R"("")"), "\"\" is no size"},
        {shape(R"("N+9223372036854775807")"), "is no size"},
        {shape(R"("999999999999N")"), "is no size"},
        {parameter(R"({"name": "a", "shape": [16777216]}, {"name": "b", "shape": [1]})"),
         "/parameters/1: more than"},
        {family(R"("units": [["b"]])"), "/units/0/0: no parameter is named \"b\""},
        {family(R"("units": [["a", "a"]])"), "/units/0/1: stands twice"},
        {family(R"("units": [["a"], ["a"]], "one_unit": true)"), "/one_unit"},
        {program(R"(["micro_step", "step"])"), "/program/1: a step after 1 of 2"},
        {program(R"(["micro_step", "window"])"), "/program/1: a window has 2"},
        {program(R"(["micro_step", "micro_step", "micro_step"])"), "/program/2: a window has 2"},
        {program(R"(["micro_step", "reload"])"), "/program/1: a reload in the middle"},
        {program(R"(["reload", "window", "reload"])"), "/program: more than one reload"},
        {program(R"(["jump"])"), "/program/0: unknown \"jump\""},
        {program(R"([])"), "/program: no actions"},
        {program(R"(["rate"])"), "/program/0: expected an object"},
        {program(R"(["save", "reload", "load"])"), "/program/2: a load behind a reload"},
        {program(R"([{"action": "step", "group": 0}])"), "/program/0: unknown key \"group\""},
        {program(R"([{"action": "rate", "group": 1, "learning_rate": 1}])"), "/program/0/group"},
        {program(R"([{"action": "rate", "group": 0, "learning_rate": 0.1}])"), "exact in fp32"},
        {program(R"([{"action": "clip", "norm": 1}])"), "/program/0: a clip before the window's"},
        {program(R"(["micro_step", {"action": "scale_gradient", "parameter": "a", "factor": 2}])"),
         "/program/1: a scale_gradient before"},
        {program(R"([{"action": "scale_weight", "parameter": "b", "factor": 2}])"),
         "/program/0/parameter: no parameter"},
        {program(R"([{"action": "scale_weight", "parameter": "a", "factor": 3}])"),
         "/program/0/factor: expected a power of two"},
        {program(R"(["micro_step", {"action": "freeze", "parameter": "a"}])"),
         "/program/1: a freeze in the middle"},
        {program(R"(["load"])"), "/program/0: a load before any save"},
        {program(R"(["save", {"action": "rate", "group": 0, "learning_rate": 1}, "load"])"),
         "/program/2: a load after a change of a rate"},
        {program(R"([{"action": "micro_step", "unused": [{"parameter": "z"}]}])"),
         "/program/0/unused/0/parameter"},
        {inject(1, "a", 0, "inf"), "/inject/0/micro_step: 1 is outside"},
        {inject(0, "b", 0, "inf"), "/inject/0/parameter: no parameter"},
        {inject(0, "a", 2, "inf"), "/inject/0/element"},
        {inject(0, "a", 0, "7"), "/inject/0/value"},
        {family(R"("sweep": [1])"), "/sweep: expected an object"},
        {family(R"("sweep": {"stage": []})"), "/sweep/stage: nothing to sweep over"},
        {family(R"("sweep": {"stage": [1, 1]})"), "/sweep/stage: a value stands twice"},
        {family(R"("sweep": {"stage": [1, 4]})"), "f.json (f/stage=4): /stage"},
        {family(R"("twin": {"differs_in": "colour", "changes": {}})"), "/twin/differs_in"},
        {family(R"("twin": {"differs_in": "stage", "changes": 1})"), "/twin/changes"},
        {family(R"("twin": {"differs_in": "stage", "changes": {"stage": 9}})"), "twin: /stage"},
        {R"({"family": "f", "purpose": "p", "transport": {"type": "fp8", "count": 1}})",
         "/transport/type"},
        {R"({"family": "f", "purpose": "p", "transport": {"type": "fp32"}})", "\"count\""},
        {family(R"("transport": {"type": "fp32", "count": 1})"), "unknown key \"parameters\""},
    };
    for (const auto& [text, place_or_reason] : rows) {
        try {
            read(text);
            ADD_FAILURE() << "accepted: " << text;
        } catch (const scenarios::BadInput& error) {
            const std::string message = error.what();
            EXPECT_TRUE(message.starts_with("f.json")) << message;
            EXPECT_NE(message.find(place_or_reason), std::string::npos)
                << message << "\nexpected: " << place_or_reason;
        }
    }
}

TEST(Family, SweepsOfAbsurdSizeAreRefusedBeforeTheyAreMade) {
    std::string values = "[0";
    for (int i = 1; i < 400; ++i) values += fmt::format(", {}", i);
    values += "]";
    EXPECT_THROW(read(family(fmt::format(R"("sweep": {{"seed": {0}, "stage": {0}}})", values))),
                 scenarios::BadInput);
}

TEST(Family, ExampleInTheDocumentationIsRead) {
    const std::string text =
        scenarios::read_text_file(std::string(ZEROPROOF_SOURCE_DIR) + "/docs/cases.md");
    const std::size_t begin = text.find("    {\n");
    const std::size_t end = text.find("\n    }\n", begin) + 6;
    ASSERT_NE(begin, std::string::npos);
    EXPECT_EQ(read(text.substr(begin, end - begin)).size(), 24u);
}

}  // namespace
}  // namespace zeroproof::suites
