// What a program gets.
#include "harness/protocol/case_document.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/protocol/safetensors.h"
#include "harness/temporary_folder.h"
#include "scenarios/json_reader.h"
#include "suites/conformance/family.h"
#include "suites/conformance/gradients.h"

namespace zeroproof::harness {
namespace {

namespace fs = std::filesystem;
using scenarios::Json;
using suites::Case;

Case case_of(const char* text) {
    return suites::read_family(text, "f.json").front();
}

constexpr const char* kReloaded = R"({
    "family": "f", "purpose": "p", "id": "f/reloaded", "stage": 2, "ranks": 3, "resume_ranks": 2,
    "resume_stage": 3, "micro_steps": 2, "seed": 5, "precision": "fp16", "clip_norm": 0.5,
    "groups": [{}, {"decay": "l2"}], "features": ["x"], "options": {"fast": [true, 0.5]},
    "surroundings": "hostile", "model": "echo",
    "parameters": [{"name": "a/b", "shape": [2, 3], "group": 1, "usage": "even_ranks"},
                   {"name": "tied", "shape": []}, {"name": "loose", "shape": [0]}],
    "units": [["a/b", "tied"], ["tied"]],
    "program": ["micro_step", {"action": "zero_grad", "by": "model"}, "micro_step", "evaluate",
                {"action": "micro_step", "unused": [{"parameter": "tied", "rank": 1}]},
                {"action": "clip", "norm": 0.5}, "step", "zero_grad", "reload",
                {"action": "rate", "group": 1, "learning_rate": 0.25}, "window",
                {"action": "scale_weight", "parameter": "tied", "factor": 2},
                {"action": "freeze", "parameter": "a/b"}, {"action": "add_group", "group": 0}],
    "inject": [{"micro_step": 4, "rank": 1, "parameter": "tied", "element": 0, "value": "nan"}]})";

class CaseDocuments : public testing::Test {
  protected:
    Json write(int ranks, const std::vector<PartOfCase>& parts) const {
        write_cases(folder_.path(), ranks, parts);
        const std::string file = (folder_.path() / "cases.json").string();
        return scenarios::parse_json(scenarios::read_text_file(file), file);
    }
    SafetensorsReader tensors(const std::string& name) const {
        return SafetensorsReader(UntrustedFile::demand(folder_.path(), name, 1 << 20));
    }

    TemporaryFolder folder_;
};

TEST_F(CaseDocuments, HoldWhatTheProtocolSays) {
    const Case c = case_of(kReloaded);
    const auto parts = parts_of(c, folder_.path());
    const Json document = write(3, {{&c, parts[0], 7}});
    EXPECT_EQ(document["schema"], "zeroproof.cases/1");
    EXPECT_EQ(document["ranks"], 3);
    Json first = document["cases"][0];
    EXPECT_FALSE(first["definition"].is_null());
    first.erase("definition");
    first.erase("groups");
    first.erase("loss_scale");
    const std::string save_to = parts[0].save_to.string();
    EXPECT_EQ(first, scenarios::parse_json(R"({
        "index": 7, "id": "f/reloaded", "tensors": "0007.safetensors", "stage": 2,
        "precision": "fp16", "micro_steps": 2,
        "parameters": [{"name": "a/b", "shape": [2, 3], "group": 1, "trainable": true},
                       {"name": "tied", "shape": [], "group": 0, "trainable": true},
                       {"name": "loose", "shape": [0], "group": 0, "trainable": true}],
        "units": [["a/b", "tied"], ["tied"]],
        "bucket_elements": 16, "overlap": true, "prefetch": true, "clip_norm": 0.5,
        "model": "echo", "surroundings": "hostile", "features": ["x"],
        "options": {"fast": [true, 0.5]}, "first_micro_step": 0, "save_to": ")" +
                                               save_to +
                                               R"(", "load_from": null,
        "actions": [
            {"index": 0, "action": "micro_step", "micro_step": 0, "synchronise": false},
            {"index": 1, "action": "zero_grad", "by": "model"},
            {"index": 2, "action": "micro_step", "micro_step": 1, "synchronise": false},
            {"index": 3, "action": "evaluate"},
            {"index": 4, "action": "micro_step", "micro_step": 2, "synchronise": true},
            {"index": 5, "action": "clip", "norm": 0.5}, {"index": 6, "action": "step"},
            {"index": 7, "action": "zero_grad", "by": "optimizer"}]})",
                                           "expected"));

    const Json second = write(2, {{&c, parts[1], 12}})["cases"][0];
    EXPECT_EQ(second["tensors"], "0012.safetensors");
    EXPECT_EQ(second["stage"], 3);
    EXPECT_EQ(second["first_micro_step"], 3);
    EXPECT_EQ(second["save_to"], nullptr);
    EXPECT_EQ(second["load_from"], save_to);
    EXPECT_EQ(second["groups"][1]["decay"], "l2");
    EXPECT_EQ(second["loss_scale"]["initial"], 256);
    EXPECT_EQ(second["actions"], scenarios::parse_json(R"([
            {"index": 8, "action": "reload"},
            {"index": 9, "action": "rate", "group": 1, "learning_rate": 0.25},
            {"index": 10, "action": "micro_step", "micro_step": 3, "synchronise": false},
            {"index": 11, "action": "micro_step", "micro_step": 4, "synchronise": true},
            {"index": 12, "action": "step"},
            {"index": 13, "action": "scale_weight", "parameter": "tied", "factor": 2.0},
            {"index": 14, "action": "freeze", "parameter": "a/b"},
            {"index": 15, "action": "add_group", "group": 0}])",
                                                       "expected"));
}

TEST_F(CaseDocuments, TensorsAreTheGradientsOfThisPart) {
    const Case c = case_of(kReloaded);
    const auto parts = parts_of(c, folder_.path());
    write(3, {{&c, parts[0], 0}});
    write(2, {{&c, parts[1], 1}});
    for (std::size_t part = 0; part < 2; ++part) {
        const SafetensorsReader reader =
            tensors(part == 0 ? "0000.safetensors" : "0001.safetensors");
        EXPECT_EQ(reader.tensors().size(), 9u);
        const std::size_t first = part == 0 ? 0 : 3;
        const std::size_t count = part == 0 ? 3 : 2;
        const auto ranks = static_cast<std::size_t>(parts[part].ranks);
        const suites::Gradients gradients(c, parts[part].ranks);
        for (std::size_t p = 0; p < 3; ++p) {
            const suites::ParameterCase& parameter = c.parameters[p];
            const std::size_t elements = parameter.elements();
            const std::size_t uses = p == 0 ? 1 : p == 1 ? 2 : 0;
            const auto initial = reader.floats("initial/" + parameter.name, parameter.shape);
            for (std::size_t e = 0; e < elements; ++e)
                EXPECT_EQ(initial[e], suites::Gradients::initial_weight(c, p, e));
            const auto gradient =
                reader.floats("gradient/" + parameter.name, {count, ranks, uses, elements});
            const auto used = reader.floats("used/" + parameter.name, {count, ranks});
            std::size_t at = 0;
            for (std::size_t k = 0; k < count; ++k)
                for (std::size_t rank = 0; rank < ranks; ++rank) {
                    const int r = static_cast<int>(rank);
                    EXPECT_EQ(used[k * ranks + rank], gradients.is_used(p, r, first + k));
                    for (std::size_t use = 0; use < uses; ++use)
                        for (std::size_t e = 0; e < elements; ++e) {
                            const double value = gradients.value({r, first + k, use}, p, e);
                            const double seen = gradient[at++];
                            EXPECT_TRUE(seen == value || (std::isnan(seen) && std::isnan(value)));
                        }
                }
        }
    }
    const auto used = tensors("0000.safetensors").floats("used/tied", {3, 3});
    EXPECT_EQ(used, (std::vector<float>{1, 1, 1, 1, 1, 1, 1, 0, 1}));
}

TEST_F(CaseDocuments, AreReadBackByProgramsInThisLanguage) {
    const Case c = case_of(kReloaded);
    const Case at_once = case_of(R"({"family": "g", "purpose": "p", "ranks": 3,
        "parameters": [{"name": "a", "shape": [1]}], "program": ["reload", "window"]})");
    const auto parts = parts_of(c, folder_.path() / "f");
    const auto other = parts_of(at_once, folder_.path() / "g");
    const std::vector<PartOfCase> written = {
        {&c, parts[0], 0}, {&at_once, other[0], 3}, {&at_once, other[1], 4}};
    write(3, written);
    CaseDocument document = read_cases(folder_.path());
    const CaseDocument moved = std::move(document);
    EXPECT_EQ(moved.ranks, 3);
    ASSERT_EQ(moved.parts.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
        const ProgramPart& a = written[i].part;
        const ProgramPart& b = moved.parts[i].part;
        EXPECT_EQ(moved.parts[i].index, written[i].index);
        EXPECT_EQ(moved.parts[i].c, &moved.cases[i]);
        EXPECT_EQ(moved.cases[i].id, written[i].c->id);
        EXPECT_EQ(moved.cases[i].program.size(), written[i].c->program.size());
        EXPECT_EQ(std::tie(a.ranks, a.stage, a.begin, a.end, a.load_from, a.save_to),
                  std::tie(b.ranks, b.stage, b.begin, b.end, b.load_from, b.save_to));
    }
}

TEST_F(CaseDocuments, OfNoCasesAreWhole) {
    EXPECT_EQ(write(1, {})["cases"].size(), 0u);
    EXPECT_TRUE(read_cases(folder_.path()).parts.empty());
    EXPECT_THROW(read_cases(folder_.path() / "nowhere"), scenarios::BadInput);
}

}  // namespace
}  // namespace zeroproof::harness
