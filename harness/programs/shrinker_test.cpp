// The shrinker on planted faults, and how findings are grouped.
#include "harness/programs/shrinker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>

#include "harness/programs/decidable.h"
#include "harness/programs/fuzz_report.h"
#include "harness/programs/fuzzer.h"
#include "harness/programs/generator.h"
#include "harness/programs/groups.h"
#include "harness/programs/simplifications.h"
#include "harness/programs/words.h"
#include "harness/subjects/reference_subject.h"
#include "harness/temporary_folder.h"
#include "scenarios/json_reader.h"
#include "suites/conformance/family.h"

namespace zeroproof::harness {
namespace {

using suites::ActionKind;

using Fault = std::function<bool(const Case&)>;

// Says nothing of a case but that it came to its end, or that it did not where it has the fault.
class Planted : public suites::Subject {
  public:
    explicit Planted(Fault fault) : fault_(std::move(fault)) {}
    const suites::Declaration& declaration() const override { return reference_->declaration(); }
    suites::Evidence run(const Case& c, std::chrono::milliseconds) override {
        suites::Evidence evidence;
        if (!fault_(c)) return evidence;
        evidence.status = suites::RunStatus::failed;
        evidence.message = "rank 0 threw: planted";
        return evidence;
    }

  private:
    Fault fault_;
    std::unique_ptr<suites::Subject> reference_ = make_reference_subject();
};

// Until something fails, or one round: whatever the time is, that comes first.
FuzzRecord fuzz_for(Planted& subject, bool stop_at_first = true) {
    FuzzRun run{{subject.declaration(), {2}, {1, 2, 3, 4}}};
    run.time = std::chrono::duration<double>(stop_at_first ? 60 : 0.001);
    run.shrinking_time = std::chrono::hours(1);  // however slow the machine is
    run.jobs = 2;
    run.stop_at_first = stop_at_first;
    return fuzz(subject, run);
}

// All that the fault needs, and nothing that it does not.
TEST(Shrinking, ComesToTheSmallestCase) {
    Planted subject([](const Case& c) {
        const bool empty = std::ranges::any_of(
            c.parameters, [](const auto& p) { return p.elements() >= 3 && p.trainable; });
        return c.ranks >= 2 && c.micro_steps >= 2 && c.has(ActionKind::evaluate) && empty;
    });
    const FuzzRecord record = fuzz_for(subject);
    ASSERT_FALSE(record.groups.empty());
    EXPECT_EQ(exit_code(record), 1);
    ASSERT_TRUE(record.first_failure_after);
    for (const FindingGroup& group : record.groups) {
        EXPECT_EQ(group.example.clause->name, "LIVENESS.END");
        EXPECT_TRUE(group.example.is_minimal);
        const Case& c = *group.example.smallest;
        EXPECT_EQ(set_up_in_words(c).substr(0, 30), "stage 2 on 2 ranks, fp32, GA 2");
        EXPECT_EQ(program_in_words(c), "evaluate");
        ASSERT_EQ(c.parameters.size(), 1u);
        EXPECT_EQ(c.parameters[0].elements(), 3u);
        EXPECT_TRUE(c.groups.size() == 1 && c.injections.empty() && c.units.size() == 1);
        EXPECT_EQ(features_of(c),
                  (std::set<std::string>{"evaluate", "several micro-steps", "several ranks"}));
    }
    EXPECT_EQ(record.groups.size(), 1u) << "one fault";
}

TEST(Shrinking, TwoFaultsAreTwoGroups) {
    Planted subject([](const Case& c) {
        return c.clip_norm > 0 || c.surroundings == suites::Surroundings::hostile;
    });
    const FuzzRecord record = fuzz_for(subject, false);
    EXPECT_EQ(record.groups.size(), 2u) << to_terminal({record, "planted", {}, {}, {}, 1, {}});
    std::size_t programs = 0;
    for (const FindingGroup& group : record.groups) programs += group.programs;
    for (const auto& [clause, count] : record.not_shrunk) programs += count;
    EXPECT_EQ(programs, record.failing);
}

TEST(Shrinking, AFailureThatDoesNotComeAgainIsToldAsSuch) {
    std::atomic<int> runs = 0;
    Planted subject([&](const Case&) { return ++runs == 1; });
    const FuzzRecord record = fuzz_for(subject);
    ASSERT_EQ(record.groups.size(), 1u);
    EXPECT_FALSE(record.groups[0].example.fails_again);
    const std::string text = to_terminal({record, "reference", {}, {}, {}, 1, {}});
    EXPECT_NE(text.find("a matter of timing?"), std::string::npos) << text;
}

TEST(Shrinking, ASavedGroupIsAFamilyThatFailsAgain) {
    const auto fault = [](const Case& c) { return c.has(ActionKind::zero_grad); };
    Planted subject(fault);
    const FuzzRecord record = fuzz_for(subject);
    ASSERT_EQ(record.groups.size(), 1u);
    const TemporaryFolder folder;
    const auto files = save_groups(record, folder.path());
    ASSERT_EQ(files.size(), 1u);
    const auto cases = suites::read_family(scenarios::read_text_file(files[0]), files[0]);
    ASSERT_EQ(cases.size(), 1u);
    EXPECT_TRUE(fault(cases[0]));
    const FuzzReport report{record, "reference", {}, {}, {}, 1, files};
    const std::string text = to_terminal(report);
    EXPECT_NE(text.find("zeroproof verify reference --cases"), std::string::npos) << text;
    EXPECT_NE(text.find("program   zero_grad"), std::string::npos) << text;
    const scenarios::Json json = scenarios::parse_json(to_json(report), "record");
    EXPECT_EQ(json["groups"][0]["clause"], "LIVENESS.END");
    EXPECT_EQ(json["groups"][0]["program"], "zero_grad");
}

TEST(Shrinking, NothingIsFoundWhereNothingIs) {
    Planted subject([](const Case&) { return false; });
    const FuzzRecord record = fuzz_for(subject, false);
    EXPECT_EQ(exit_code(record), 0);
    EXPECT_GT(record.programs, 0u);
    EXPECT_TRUE(record.groups.empty());
}

// What no longer refers to anything goes with what it referred to.
TEST(Simplifications, EveryOneOfThemIsSoundByItself) {
    const auto reference = make_reference_subject();
    const ProgramSpace space{reference->declaration(), {0, 1, 2, 3}, {1, 2, 3, 4}};
    std::size_t legal_ones = 0;
    std::size_t all = 0;
    for (std::uint64_t k = 0; k < 60; ++k) {
        const Case c = random_case(space, 5, k);
        for (const Edit& edit : simplifications(c)) {
            Draft draft(c);
            edit.make(draft);
            const Case simpler = finished(draft);
            ++all;
            if (const auto read = legal(simpler)) {
                ++legal_ones;
                EXPECT_EQ(read->stage, c.stage);
            }
        }
    }
    EXPECT_GT(legal_ones, all / 2);
}

TEST(Words, TellWindowsAndWhatIsOutOfTheOrdinary) {
    const Case c = suites::read_family(R"({"family": "f", "purpose": "p", "stage": 2, "ranks": 3,
        "micro_steps": 2, "clip_norm": 0.5, "resume_ranks": 1,
        "parameters": [{"name": "a", "shape": [5]}, {"name": "b", "shape": [2, 3],
                        "trainable": false}],
        "units": [["a"], ["b"], ["a"]],
        "program": ["window", "window", "evaluate", "reload", "micro_step", "zero_grad",
                    {"action": "micro_step", "unused": [{"parameter": "a", "rank": 1}]},
                    "micro_step", "step"]})",
                                       "test")
                       .front();
    EXPECT_EQ(set_up_in_words(c),
              "stage 2 on 3 ranks, fp32, GA 2; a [5] tied in 2 units, b [2, 3] frozen; "
              "units (a), (b), (a); clipped to 0.5");
    EXPECT_EQ(program_in_words(c),
              "2 windows, evaluate, reload on 1 rank, micro-step, zero_grad, micro-step without a "
              "on rank 1, micro-step, step");
}

}  // namespace
}  // namespace zeroproof::harness
