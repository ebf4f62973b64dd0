// What a program gives, and what it had better not.
#include "harness/protocol/evidence_document.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/protocol/evidence_comparison.h"
#include "harness/subjects/reference_subject.h"
#include "harness/temporary_folder.h"
#include "scenarios/json_reader.h"
#include "suites/conformance/family.h"

namespace zeroproof::harness {
namespace {

namespace fs = std::filesystem;
using scenarios::BadInput;
using scenarios::Json;
using suites::Case;
using suites::Observation;
using suites::RunStatus;

Case example() {
    return suites::read_family(R"({
        "family": "f", "purpose": "p", "id": "f/one", "stage": 2, "ranks": 2, "micro_steps": 2,
        "precision": "fp16", "surroundings": "hostile", "model": "echo", "clip_norm": 0.5,
        "parameters": [{"name": "a/b", "shape": [2, 3]}, {"name": "tied", "shape": []},
                       {"name": "empty", "shape": [0]}],
        "units": [["a/b", "tied"], ["tied", "empty"]],
        "program": ["window", "evaluate", "window"],
        "inject": [{"micro_step": 3, "rank": 1, "parameter": "tied", "element": 0,
                    "value": "inf"}]})",
                               "f.json")
        .front();
}

class EvidenceDocuments : public testing::Test {
  protected:
    EvidenceDocuments() {
        fs::create_directory(results());
        RunStatus status = RunStatus::completed;
        std::string message;
        result_.observed = suites::Observations::all();
        result_.evidence =
            run_reference_part(case_, part_.part, std::chrono::seconds(60), status, message)
                .at(kRank);
        EXPECT_EQ(message, "");
        // What the reference never does.
        result_.evidence.races = {{collectives::RaceKind::output_touched, "all_reduce of 3", 17, 2},
                                  {collectives::RaceKind::not_awaited, "", 18, 0}};
    }

    fs::path results() const { return folder_.path() / "results"; }
    fs::path path(const std::string& name) const { return results() / "0005" / name; }
    void write() const { write_evidence(results(), part_, kRank, result_); }
    RankResult read() const { return read_evidence(results(), part_, kRank); }

    Json json() const {
        return scenarios::parse_json(scenarios::read_text_file(path("rank-1.json").string()),
                                     "json");
    }
    void put(const Json& json) const { put("rank-1.json", json.dump()); }
    void put(const std::string& name, const std::string& text) const {
        std::ofstream(path(name), std::ios::binary) << text;
    }
    // Writes the tensors anew, each as `change` has left it; without a name it is left out.
    struct Tensor {
        std::string name;
        Shape shape;
        std::vector<float> values;
    };
    void change_tensors(const std::function<void(Tensor&)>& change) const {
        std::vector<Tensor> tensors;
        {
            const SafetensorsReader reader(
                UntrustedFile::demand(results(), "0005/rank-1.safetensors", 1 << 20));
            for (const auto& [name, place] : reader.tensors())
                tensors.push_back({name, place.shape, reader.floats(name, place.shape)});
        }
        SafetensorsWriter writer;
        for (Tensor& tensor : tensors) {
            change(tensor);
            if (!tensor.name.empty())
                writer.add(tensor.name, tensor.shape, std::span(tensor.values));
        }
        writer.write(path("rank-1.safetensors"));
    }

    std::string message() const {
        try {
            read();
        } catch (const BadInput& error) {
            return error.what();
        }
        return "nothing was wrong";
    }

    static constexpr int kRank = 1;
    TemporaryFolder folder_;
    const Case case_ = example();
    const PartOfCase part_{&case_, {2, 2, 0, case_.program.size(), {}, {}, {}}, 5};
    RankResult result_;
};

#define EXPECT_HOLDS(text, part) \
    EXPECT_NE((text).find(part), std::string::npos) << (text) << "\nexpected: " << (part)

TEST_F(EvidenceDocuments, AreReadBackAsTheyWereWritten) {
    EXPECT_FALSE(has_finished(results(), part_, kRank));
    write();
    EXPECT_TRUE(has_finished(results(), part_, kRank));
    EXPECT_FALSE(has_finished(results(), part_, 0));
    const RankResult again = read();
    EXPECT_EQ(again.status, RunStatus::completed);
    expect_same(result_.evidence, again.evidence);
    // That nothing of it was empty.
    EXPECT_FALSE(again.evidence.echoes.empty());
    EXPECT_FALSE(again.evidence.collectives.empty());
    EXPECT_FALSE(again.evidence.in_flight.empty());
    EXPECT_TRUE(again.evidence.races_watched);
    EXPECT_TRUE(again.evidence.snapshots.back().skipped);
    for (std::size_t i = 0; i < suites::kObservations; ++i)
        EXPECT_TRUE(again.observed.has(static_cast<Observation>(i)));
}

TEST_F(EvidenceDocuments, ValuesThatAreWrongAreEvidence) {
    suites::Snapshot& snapshot = result_.evidence.snapshots[1];
    snapshot.norm = NAN;
    snapshot.clip_coefficient = -INFINITY;
    snapshot.loss_scale = INFINITY;
    snapshot.steps_taken = 12345678901234;
    snapshot.weights[0][0] = NAN;
    snapshot.owned[0].momentum[0] = -INFINITY;
    snapshot.owned[0].begin = 1000;  // beyond the parameter
    write();
    expect_same(result_.evidence, read().evidence);
}

TEST_F(EvidenceDocuments, WhatIsNotObservedIsEmpty) {
    for (std::size_t i = 0; i < suites::kObservations; ++i) {
        const auto one = static_cast<Observation>(i);
        SCOPED_TRACE(std::string(name_of(one)));
        RankResult less = result_;
        less.observed.remove(one);
        write_evidence(results(), part_, kRank, less);
        const suites::RankEvidence seen = read().evidence;
        EXPECT_FALSE(read().observed.has(one));
        // The same if it is given all the same.
        write();
        Json all = json();
        auto& observed = all["observed"];
        for (std::size_t at = 0; at < observed.size(); ++at)
            if (observed[at] == std::string(name_of(one))) observed.erase(at--);
        put(all);
        expect_same(seen, read().evidence);

        const suites::Snapshot& snapshot = seen.snapshots[1];
        EXPECT_EQ(snapshot.weights.empty(), one == Observation::weights);
        EXPECT_EQ(snapshot.owned[0].master.empty(), one == Observation::master);
        EXPECT_EQ(snapshot.owned[0].gradient.empty(), one == Observation::gradient);
        EXPECT_EQ(seen.collectives.empty(), one == Observation::collectives);
        EXPECT_EQ(seen.collective_actions.empty(), one == Observation::collectives);
        EXPECT_EQ(seen.echoes.empty(), one == Observation::echoes);
        EXPECT_EQ(seen.races.empty(), one == Observation::races);
        EXPECT_NE(seen.races_watched, one == Observation::races);
        EXPECT_EQ(snapshot.norm == 0, one == Observation::norm);
        EXPECT_EQ(snapshot.steps_taken == 0, one == Observation::steps);
    }
}

TEST_F(EvidenceDocuments, ARunThatWasNotCompletedHasAMessageAlone) {
    for (const auto status : {RunStatus::rejected, RunStatus::failed, RunStatus::environment}) {
        result_.status = status;
        result_.message = "why \xFF not";
        write();
        const RankResult again = read();
        EXPECT_EQ(again.status, status);
        EXPECT_EQ(again.message, "why \xEF\xBF\xBD not");
        EXPECT_TRUE(again.evidence.snapshots.empty());
        EXPECT_FALSE(again.observed.has(Observation::weights));
    }
    put(Json{{"schema", "zeroproof.evidence/1"},
             {"index", 5},
             {"id", "f/one"},
             {"rank", 1},
             {"status", "failed"},
             {"message", "no tensors"}});
    fs::remove(path("rank-1.safetensors"));
    EXPECT_EQ(read().message, "no tensors");
    result_.status = RunStatus::adapter_failed;
    EXPECT_THROW(write(), std::logic_error);
}

TEST_F(EvidenceDocuments, APartBehindAReloadHasNoSnapshotBefore) {
    const Case c = suites::read_family(R"({"family": "g", "purpose": "p", "ranks": 1,
        "parameters": [{"name": "a", "shape": [3]}], "program": ["window", "reload", "window"]})",
                                       "g.json")
                       .front();
    const fs::path saved = folder_.path() / "saved";
    fs::create_directory(saved);
    std::size_t index = 0;
    for (const ProgramPart& program : parts_of(c, saved)) {
        const PartOfCase part{&c, program, index++};
        RunStatus status = RunStatus::completed;
        RankResult result;
        result.observed = suites::Observations::all();
        result.evidence =
            run_reference_part(c, program, std::chrono::seconds(60), status, result.message).at(0);
        write_evidence(results(), part, 0, result);
        const RankResult again = read_evidence(results(), part, 0);
        expect_same(result.evidence, again.evidence);
        EXPECT_EQ(again.evidence.snapshots.front().action, index == 1 ? -1 : 2);
        EXPECT_EQ(again.evidence.snapshots.size(), 2u);
    }
}

TEST_F(EvidenceDocuments, WeightsMayBeFlat) {
    write();
    change_tensors([](Tensor& tensor) { tensor.shape = {tensor.values.size()}; });
    expect_same(result_.evidence, read().evidence);
}

TEST_F(EvidenceDocuments, EveryMistakeInTheJsonIsRefusedAtItsPlace) {
    write();
    const Json right = json();
    const auto set = [](const char* pointer, const char* value) {
        return [pointer, value](Json& json) {
            json[Json::json_pointer(pointer)] = scenarios::parse_json(value, "value");
        };
    };
    const auto erase = [](const char* parent, const char* key) {
        return [parent, key](Json& json) { json[Json::json_pointer(parent)].erase(key); };
    };
    const struct {
        std::function<void(Json&)> change;
        const char* message;
    } rows[] = {
        {[](Json& json) { json = Json::array(); }, "/: expected an object"},
        {set("/schema", "\"zeroproof.evidence/2\""), "\"zeroproof.evidence/1\": update"},
        {set("/schema", "1"), "/schema: expected a string"},
        {erase("", "schema"), "\"schema\" is missing"},
        {set("/extra", "1"), "unknown key \"extra\""},
        {set("/index", "6"), "/index: 6, in the file that is for 5"},
        {set("/rank", "0"), "/rank: 0, in the file that is for 1"},
        {set("/rank", "1.0"), "/rank: expected an integer"},
        {set("/rank", "18446744073709551616"), "/rank"},
        {set("/id", "\"f/two\""), "/id: cases.json calls this case \"f/one\""},
        {set("/status", "\"done\""), "/status: unknown \"done\""},
        {set("/status", "\"adapter_failed\""), "/status: unknown"},
        {set("/status", "null"), "/status: expected a string"},
        {set("/message", "7"), "/message: expected a string"},
        {[](Json& json) { json["message"] = std::string(1'048'577, 'x'); }, "/message: more than"},
        {[&](Json& json) {
             json["status"] = "failed";
             json.erase("message");
         },
         "\"message\" is missing"},
        {erase("", "observed"), "\"observed\" is missing"},
        {set("/observed/0", "\"everything\""), "/observed/0: unknown \"everything\""},
        {set("/observed", "{}"), "/observed: expected an array"},
        {erase("", "snapshots"), "\"snapshots\" is missing"},
        {[](Json& json) { json["snapshots"].erase(3); }, "3 snapshots where 4 are due"},
        {[](Json& json) { json["snapshots"].push_back(json["snapshots"][3]); }, "/snapshots: 5"},
        {set("/snapshots/0/action", "0"),
         "/snapshots/0/action: this snapshot is due after action "
         "-1"},
        {set("/snapshots/1/action", "99999999999"), "/snapshots/1/action"},
        {set("/snapshots/0/skipped", "false"), "/snapshots/0: unknown key \"skipped\""},
        {set("/snapshots/1/mood", "1"), "/snapshots/1: unknown key \"mood\""},
        {erase("/snapshots/1", "norm"),
         "/snapshots/1: the key \"norm\" is missing: give it, or "
         "take \"norm\" out"},
        {erase("/snapshots/1", "skipped"), "take \"skips\" out"},
        {erase("/snapshots/0", "steps_taken"), "take \"steps\" out"},
        {erase("/snapshots/0", "live_bytes"), "take \"live_bytes\" out"},
        {erase("/snapshots/0", "owned"), "\"owned\" is missing"},
        {set("/snapshots/1/norm", "\"infinite\""), "/snapshots/1/norm: unknown"},
        {set("/snapshots/1/norm", "true"), "/snapshots/1/norm: expected a number"},
        {set("/snapshots/1/skipped", "0"), "/snapshots/1/skipped: expected true or false"},
        {set("/snapshots/1/steps_taken", "-1"), "/snapshots/1/steps_taken: -1"},
        {set("/snapshots/1/live_bytes/disk", "1"), "/snapshots/1/live_bytes: an unknown key"},
        {set("/snapshots/1/live_bytes/buffer", "-1"), "/snapshots/1/live_bytes/buffer: -1"},
        {set("/snapshots/1/live_bytes", "[]"), "/snapshots/1/live_bytes: expected an object"},
        {set("/snapshots/1/owned/0/parameter", "\"c\""),
         "/snapshots/1/owned/0/parameter: the case has no parameter \"c\""},
        {set("/snapshots/1/owned/0/parameter", "0"), "owned/0/parameter: expected a string"},
        {set("/snapshots/1/owned/0/begin", "-1"), "/snapshots/1/owned/0/begin: -1"},
        {set("/snapshots/1/owned/0/elements", "18446744073709551615"), "owned/0/elements"},
        {set("/snapshots/1/owned/0/elements", "7"), "has the shape"},
        {set("/snapshots/1/owned/0/end", "7"), "unknown key \"end\""},
        {[](Json& json) {
             json["snapshots"][1]["owned"].push_back(json["snapshots"][1]["owned"][0]);
         },
         "its tensors lack"},
        {[](Json& json) { json["snapshots"][1]["owned"].erase(0); }, "tensor"},
        {erase("", "echoes"), "the key \"echoes\" is missing"},
        {[](Json& json) { json["echoes"].erase(0); }, "tensor"},
        {set("/echoes/0/action", "4"), "nothing was wrong"},
        {set("/echoes/0/action", "-1"), "/echoes/0/action: -1"},
        {set("/echoes/0/action", "7"), "/echoes/0/action: 7 is none of this part's actions"},
        {set("/echoes/0/unit", "2"), "/echoes/0/unit: 2"},
        {set("/echoes/0/parameter", "\"c\""), "/echoes/0/parameter: the case has no"},
        {set("/echoes/0/backward", "1"), "/echoes/0/backward"},
        {set("/echoes/0/weights", "[]"), "/echoes/0: unknown key"},
        {erase("", "collectives"), "the key \"collectives\" is missing"},
        {set("/collectives/0/action", "-2"), "/collectives/0/action"},
        {set("/collectives/0/phase", "\"lunch\""), "/collectives/0/phase: unknown \"lunch\""},
        {set("/collectives/0/traffic", "\"x\""), "/collectives/0/traffic: unknown"},
        {set("/collectives/0/op", "\"allreduce\""), "/collectives/0/op: unknown"},
        {set("/collectives/0/reduction", "\"avg\""), "/collectives/0/reduction: unknown"},
        {set("/collectives/0/type", "\"fp8\""), "/collectives/0/type: unknown"},
        {set("/collectives/0/in_elements", "9999999999"), "/collectives/0/in_elements"},
        {set("/collectives/0/out_elements", "1.5"), "/collectives/0/out_elements"},
        {set("/collectives/0/peer", "64"), "/collectives/0/peer"},
        {set("/collectives/0/group", "[]"), "/collectives/0/group: rank 1 is not in its own"},
        {set("/collectives/0/group", "[0]"), "/collectives/0/group: rank 1 is not in its own"},
        {set("/collectives/0/group", "[1, 1]"), "/collectives/0/group/1: stands twice"},
        {set("/collectives/0/group", "[1, 2]"), "/collectives/0/group/1: 2"},
        {set("/collectives/0/sequence", "-1"), "/collectives/0/sequence"},
        {set("/collectives/0/awaited", "null"), "/collectives/0/awaited"},
        {set("/collectives/0/issued", "1"), "/collectives/0: unknown key \"issued\""},
        {erase("/collectives/0", "op"), "/collectives/0: the key \"op\" is missing"},
        {set("/in_flight/0/unit", "2"), "/in_flight/0/unit"},
        {set("/in_flight/0/gradients", "-1"), "/in_flight/0/gradients"},
        {erase("", "in_flight"), "\"in_flight\" is missing"},
        {erase("", "races"), "the key \"races\" is missing"},
        {erase("", "races_watched"), "the key \"races_watched\" is missing"},
        {set("/races/0/kind", "\"rumour\""), "/races/0/kind: unknown \"rumour\""},
        {set("/races/0/number", "-1"), "/races/0/number"},
        {set("/races/0/operation", "[]"), "/races/0/operation"},
        {set("/peak_bytes/lunch", "1"), "/peak_bytes: an unknown key"},
        {set("/peak_bytes/forward", "1e300"), "/peak_bytes/forward"},
        {erase("", "peak_bytes"), "\"peak_bytes\" is missing"},
    };
    for (const auto& [change, expected] : rows) {
        Json wrong = right;
        change(wrong);
        put(wrong);
        const std::string seen = message();
        EXPECT_HOLDS(seen, expected);
    }
    const struct {
        const char* text;
        const char* expected;
    } texts[] = {
        {"", "parse error"},
        {"{\"schema\": \"zeroproof.evidence/1\"", "parse error"},
        {"{\"schema\": \"\xFF\"}", "UTF-8"},
        {"{\"schema\": 1, \"schema\": 2}", "stands twice"},
        {"{\"schema\": NaN}", "parse error"},
    };
    for (const auto& [text, expected] : texts) {
        put("rank-1.json", text);
        EXPECT_HOLDS(message(), expected);
        EXPECT_HOLDS(message(), path("rank-1.json").string());
    }
    std::string deep = "{\"snapshots\": ";
    for (int i = 0; i < 100'000; ++i) deep += '[';
    put("rank-1.json", deep);
    EXPECT_HOLDS(message(), "nested");
}

TEST_F(EvidenceDocuments, EveryMistakeInTheTensorsIsRefusedByName) {
    const struct {
        std::function<void(Tensor&)> change;
        const char* message;
    } rows[] = {
        {[](Tensor& t) {
             if (t.name == "0/weights/a/b") t.name = "";
         },
         "lack \"0/weights/a/b\": write it, or take \"weights\" out"},
        {[](Tensor& t) {
             if (t.name == "1/owned/0/gradient") t.name = "";
         },
         "lack \"1/owned/0/gradient\": write it, or take \"gradient\" out"},
        {[](Tensor& t) {
             if (t.name == "echo/0") t.name = "";
         },
         "lack \"echo/0\""},
        {[](Tensor& t) {
             if (t.name == "echo/0") t.name = "echo/00";
         },
         "lack \"echo/0\""},
        {[](Tensor& t) {
             if (t.name == "0/weights/a/b") t.shape = {3, 2};
         },
         "tensor \"0/weights/a/b\": has the shape [3, 2]; expected is [2, 3] or [6]"},
        {[](Tensor& t) {
             if (t.name == "0/weights/tied") t.shape = {1, 1};
         },
         "expected is [] or [1]"},
        {[](Tensor& t) {
             if (t.name == "0/owned/0/master") t.shape.push_back(1);
         },
         "tensor \"0/owned/0/master\": has the shape"},
        // After a skipped step a gradient may be left out.
        {[](Tensor& t) {
             if (t.name == "3/owned/0/gradient") t.name = "";
         },
         "nothing was wrong"},
    };
    for (const auto& [change, expected] : rows) {
        write();
        change_tensors(change);
        EXPECT_HOLDS(message(), expected);
    }
    write();
    SafetensorsWriter extra;
    extra.add("more", {0}, std::span<const float>());
    Json empty = json();
    empty["observed"] = Json::array();
    put(empty);
    extra.write(path("rank-1.safetensors"));
    EXPECT_HOLDS(message(), "no key calls for tensor \"more\": leave it out");
    SafetensorsWriter().write(path("rank-1.safetensors"));
    EXPECT_EQ(message(), "nothing was wrong");
    write();
    fs::remove(path("rank-1.safetensors"));
    EXPECT_HOLDS(message(), "rank-1.safetensors: is missing");
}

TEST_F(EvidenceDocuments, LinksPipesAndLargeFilesAreRefused) {
    write();
    const fs::path kept = folder_.path() / "kept";
    for (const char* name : {"rank-1.json", "rank-1.safetensors"}) {
        fs::rename(path(name), kept);
        fs::create_symlink(kept, path(name));
        EXPECT_TRUE(has_finished(results(), part_, kRank) || name[7] == 's');
        EXPECT_HOLDS(message(), "symbolic link");
        fs::remove(path(name));
        ASSERT_EQ(mkfifo(path(name).c_str(), 0600), 0);
        EXPECT_HOLDS(message(), "is no regular file");
        fs::remove(path(name));
        put(name, "");
        fs::resize_file(path(name), std::uintmax_t{1} << 33);  // sparse
        EXPECT_HOLDS(message(), "has 8589934592 bytes; at most");
        fs::remove(path(name));
        fs::rename(kept, path(name));
        EXPECT_EQ(message(), "nothing was wrong");
    }
    fs::rename(results() / "0005", kept);
    fs::create_directory_symlink(kept, results() / "0005");
    EXPECT_HOLDS(message(), "symbolic link");
    fs::remove(results() / "0005");
    fs::rename(kept, results() / "0005");
    fs::rename(results(), kept);
    fs::create_directory_symlink(kept, results());
    EXPECT_HOLDS(message(), "symbolic link");
}

TEST_F(EvidenceDocuments, ReadyIsThereOnceItIsWritten) {
    EXPECT_FALSE(read_ready(results(), 0).has_value());
    EXPECT_FALSE(read_ready(results() / "nowhere", 0).has_value());
    write_ready(results(), 0, {"fsdp2", "2.13.0"});
    ASSERT_TRUE(read_ready(results(), 0).has_value());
    EXPECT_EQ(read_ready(results(), 0)->subject, "fsdp2");
    EXPECT_EQ(read_ready(results(), 0)->version, "2.13.0");
    const char* const texts[] = {
        "",
        "{}",
        R"({"schema": "zeroproof.evidence/2", "subject": "a", "version": "b"})",
        R"({"schema": "zeroproof.evidence/1", "subject": "a"})",
        R"({"schema": "zeroproof.evidence/1", "subject": "a", "version": 1})",
        R"({"schema": "zeroproof.evidence/1", "subject": "a", "version": "b", "x": 1})"};
    for (const char* text : texts) {
        std::ofstream(results() / "ready-0.json") << text;
        EXPECT_THROW(read_ready(results(), 0), BadInput) << text;
    }
    fs::resize_file(results() / "ready-0.json", 1 << 20);
    EXPECT_THROW(read_ready(results(), 0), BadInput);
    fs::remove(results() / "ready-0.json");
    fs::create_symlink("nowhere", results() / "ready-0.json");
    EXPECT_THROW(read_ready(results(), 0), BadInput);
}

}  // namespace
}  // namespace zeroproof::harness
