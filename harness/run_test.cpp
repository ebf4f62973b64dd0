// What the runner makes of subjects that go wrong.
#include "harness/run.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "harness/subjects/reference_subject.h"
#include "suites/conformance/family.h"

namespace zeroproof::harness {
namespace {

// The reference, but the runs of some cases end as told.
class Scripted : public suites::Subject {
  public:
    std::function<bool(const Case&, suites::Evidence&)> script;  // whether it took the case

    const suites::Declaration& declaration() const override { return reference_->declaration(); }
    suites::Evidence run(const Case& c, std::chrono::milliseconds timeout) override {
        suites::Evidence evidence;
        return script && script(c, evidence) ? evidence : reference_->run(c, timeout);
    }

  private:
    std::unique_ptr<suites::Subject> reference_ = make_reference_subject();
};

class Run : public testing::Test {
  protected:
    Run() {
        cases_ = suites::read_family(R"({"family": "f", "purpose": "p", "program": ["window"],
            "parameters": [{"name": "a", "shape": [5]}],
            "sweep": {"stage": [0, 1, 2, 3], "ranks": [1, 2]}})",
                                     "test");
        for (const Case& c : cases_) chosen_.push_back(&c);
        options_.jobs = 2;
    }
    Record go() {
        Record record;
        run(subject_, chosen_, options_, record);
        return record;
    }

    std::vector<Case> cases_;
    std::vector<const Case*> chosen_;
    Scripted subject_;
    RunOptions options_;
};

TEST_F(Run, KeepsTheOrderAndTellsProgress) {
    std::size_t calls = 0;
    options_.progress = [&](std::size_t, std::size_t total, std::size_t failures) {
        ++calls;
        EXPECT_EQ(total, 8u);
        EXPECT_EQ(failures, 0u);
    };
    const Record record = go();
    ASSERT_EQ(record.cases.size(), 8u);
    EXPECT_EQ(calls, 8u);
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(record.cases[i].c, chosen_[i]);
    EXPECT_EQ(record.count(Verdict::fail), 0u);
}

TEST_F(Run, OneRunThatDiesFailsItsCaseAlone) {
    subject_.script = [](const Case& c, suites::Evidence& evidence) {
        if (c.id != "f/stage=2,ranks=2") return false;
        evidence.status = suites::RunStatus::failed;
        evidence.message = "rank 1 threw: no luck";
        return true;
    };
    const Record record = go();
    EXPECT_EQ(exit_code(record), 1);
    for (const CaseResult& result : record.cases)
        for (const ClauseResult& clause : result.clauses) {
            const Verdict verdict = clause.judgement.verdict;
            if (result.c->id != "f/stage=2,ranks=2")
                EXPECT_NE(verdict, Verdict::fail) << result.c->id;
            else if (clause.clause->name == "LIVENESS.END")
                EXPECT_EQ(verdict, Verdict::fail);
            else
                EXPECT_NE(verdict, Verdict::pass) << clause.clause->name;
        }
}

TEST_F(Run, NothingThatDidNotRunIsAPass) {
    subject_.script = [](const Case&, suites::Evidence& evidence) {
        evidence.status = suites::RunStatus::environment;
        evidence.message = "not here";
        return true;
    };
    const Record record = go();
    EXPECT_EQ(record.count(Verdict::pass), 0u);
    EXPECT_EQ(exit_code(record), 4);
    EXPECT_EQ(exit_code(Record{}), 3);
}

TEST_F(Run, ASilentFallbackIsAFailure) {
    cases_[0].features = {"offload"};
    Scripted accepting;
    accepting.script = [](const Case& c, suites::Evidence& evidence) {
        evidence.status = suites::RunStatus::completed;
        return !c.features.empty();
    };
    Record record;
    run(accepting, {&cases_[0]}, options_, record);
    ASSERT_EQ(record.cases.size(), 1u);
    EXPECT_EQ(record.count(Verdict::fail), 1u);
    EXPECT_EQ(record.cases[0].clauses.back().clause->name, "REJECT.CLEAR");
}

TEST_F(Run, StopsAtTheFirstFailure) {
    subject_.script = [](const Case&, suites::Evidence& evidence) {
        evidence.status = suites::RunStatus::failed;
        return true;
    };
    options_.jobs = 1;
    options_.stop_at_first_failure = true;
    EXPECT_EQ(go().cases.size(), 1u);
}

// What is finished is kept, and the endless case fails.
TEST_F(Run, ARankThatComputesWithoutEndEndsTheRunWithWhatThereIs) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    subject_.script = [](const Case& c, suites::Evidence&) {
        while (c.id == "f/stage=2,ranks=2") std::this_thread::sleep_for(std::chrono::seconds(1));
        return false;
    };
    options_.jobs = 1;
    options_.timeout = std::chrono::milliseconds(100);
    options_.stuck = [](const Record& record) {
        for (const CaseResult& result : record.cases)
            std::fprintf(stderr, "%s: %s\n", result.c->id.c_str(), result.message.c_str());
        std::_Exit(exit_code(record));
    };
    EXPECT_EXIT(go(), testing::ExitedWithCode(1),
                "f/stage=2,ranks=1: \nf/stage=2,ranks=2: a rank computes without end");
}

TEST_F(Run, ABrokenOffRunIsNoConformance) {
    subject_.script = [](const Case& c, suites::Evidence& evidence) {
        evidence.status = suites::RunStatus::failed;
        return c.id == "f/stage=2,ranks=2";
    };
    options_.clauses = {suites::find_clause("GRADIENT.MEAN")};
    EXPECT_EQ(exit_code(go()), 4);
}

TEST_F(Run, AFaultOfTheHarnessIsNoVerdict) {
    subject_.script = [](const Case&, suites::Evidence&) -> bool {
        throw std::runtime_error("a fault of the harness");
    };
    EXPECT_THROW(go(), std::runtime_error);
}

}  // namespace
}  // namespace zeroproof::harness
