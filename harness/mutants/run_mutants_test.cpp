// What becomes of a mutant, from how its verifications end; and the children themselves.
#include "harness/mutants/run_mutants.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <thread>

#include "harness/mutants/command.h"
#include "harness/temporary_folder.h"

namespace zeroproof::harness {
namespace {

using How = ChildEnd::How;
using std::chrono::milliseconds;

MutantResult classified(ChildEnd named, ChildEnd all, std::vector<std::string> failed = {}) {
    MutantResult result;
    result.mutant.killed_by = "NORM.VALUE";
    classify(
        {named, {}},
        [&] {
            return Verification{all, std::move(failed)};
        },
        result);
    return result;
}

TEST(Classify, TheNamedClauseKillsAndTheRestIsNotAskedFor) {
    MutantResult result;
    result.mutant.killed_by = "NORM.VALUE";
    classify(
        {{How::exited, 1}, {}}, []() -> Verification { throw std::logic_error("asked"); }, result);
    EXPECT_EQ(result.outcome, MutantOutcome::killed);
    EXPECT_EQ(result.killers, std::vector<std::string>{"NORM.VALUE"});
}

TEST(Classify, AnotherClauseKills) {
    for (const ChildEnd named : {ChildEnd{How::exited, 0}, ChildEnd{How::exited, 3},
                                 ChildEnd{How::signalled, SIGSEGV}, ChildEnd{How::timed_out, 0}}) {
        const MutantResult result = classified(named, {How::exited, 1}, {"LIVENESS.END"});
        EXPECT_EQ(result.outcome, MutantOutcome::killed_by_another);
        EXPECT_EQ(result.killers, std::vector<std::string>{"LIVENESS.END"});
    }
}

TEST(Classify, NothingFailsOrTheProcessDoes) {
    EXPECT_EQ(classified({How::exited, 0}, {How::exited, 0}).outcome, MutantOutcome::survived);
    EXPECT_EQ(classified({How::exited, 3}, {How::exited, 3}).outcome, MutantOutcome::survived);
    EXPECT_EQ(classified({How::exited, 0}, {How::signalled, SIGSEGV}).outcome,
              MutantOutcome::crashed);
    EXPECT_EQ(classified({How::exited, 5}, {How::exited, 5}).outcome, MutantOutcome::crashed);
    EXPECT_EQ(classified({How::exited, 4}, {How::timed_out, 0}).outcome, MutantOutcome::timed_out);
}

TEST(FailedClauses, AreThoseOfTheRecordWithThatVerdict) {
    EXPECT_EQ(failed_clauses(R"({"cases": [{"clauses": [{"clause": "B", "verdict": "fail"},
                                                        {"clause": "C", "verdict": "rejected"}]},
                                           {"clauses": [{"clause": "A", "verdict": "fail"},
                                                        {"clause": "B", "verdict": "fail"}]}],
                                 "clauses": [{"clause": "D", "sentence": "fail"}]})"),
              (std::vector<std::string>{"A", "B"}));
    EXPECT_TRUE(failed_clauses("").empty());
    EXPECT_TRUE(failed_clauses(R"({"cases": [)").empty());
}

TEST(Search, AnyClauseFinds) {
    const auto searched = [](ChildEnd end, std::string_view record) {
        MutantResult result;
        result.mutant.killed_by = "NORM.VALUE";
        classify_search(read_search(end, record), result);
        return result;
    };
    const MutantResult other = searched({How::exited, 1}, R"({"first_failure_after_seconds": 0.5,
        "groups": [{"clause": "GRADIENT.MEAN", "fails_too": ["MOMENT.FIRST"]}]})");
    EXPECT_EQ(other.outcome, MutantOutcome::killed_by_another);
    EXPECT_EQ(other.found_after, 0.5);
    EXPECT_EQ(other.killers, (std::vector<std::string>{"GRADIENT.MEAN", "MOMENT.FIRST"}));
    const MutantResult named = searched({How::exited, 1}, R"({"first_failure_after_seconds": 2,
        "groups": [{"clause": "LIVENESS.END", "fails_too": ["NORM.VALUE"]}]})");
    EXPECT_EQ(named.outcome, MutantOutcome::killed);
    const MutantResult none = searched({How::exited, 0}, R"({"first_failure_after_seconds": null,
        "groups": []})");
    EXPECT_EQ(none.outcome, MutantOutcome::survived);
    const MutantResult dead = searched({How::signalled, SIGSEGV}, "");
    EXPECT_EQ(dead.outcome, MutantOutcome::crashed);

    const SearchScore score = search_score({other, named, none, dead});
    EXPECT_EQ(score.found, 2u);
    EXPECT_EQ(score.share, 0.5);
    EXPECT_EQ(score.median, 1.25);
}

TEST(Report, ScoreIsWhatTheNamedClauseKilledOfAll) {
    std::vector<MutantResult> results(4);
    results[0].outcome = MutantOutcome::killed;
    results[1].outcome = MutantOutcome::killed_by_another;
    results[1].killers = {"OTHER.CLAUSE"};
    results[2].outcome = MutantOutcome::survived;
    results[3].outcome = MutantOutcome::crashed;
    const std::string text = to_terminal(results, 2, false);
    EXPECT_NE(text.find("score 25.0 %"), std::string::npos) << text;
    EXPECT_NE(text.find("seen: OTHER.CLAUSE failed"), std::string::npos) << text;
    EXPECT_NE(to_json(results, 2).find("\"score\": 0.25"), std::string::npos);
}

class ChildTest : public testing::Test {
  protected:
    ChildEnd run(const std::string& script, milliseconds limit = milliseconds(60'000)) {
        return run_child({"sh", "-c", script}, folder_.path(), folder_.path() / "out.txt", limit);
    }
    std::string output() {
        std::ifstream stream(folder_.path() / "out.txt");
        return {std::istreambuf_iterator<char>(stream), {}};
    }
    TemporaryFolder folder_;
};

TEST_F(ChildTest, TellsHowItEnds) {
    EXPECT_TRUE(run("echo out; echo error >&2; pwd; exit 3").exited_with(3));
    EXPECT_EQ(output(), "out\nerror\n" + folder_.path().string() + "\n");
    const ChildEnd killed = run("kill -SEGV $$");
    EXPECT_EQ(killed.how, How::signalled);
    EXPECT_EQ(killed.code, SIGSEGV);
}

// Its own children go with it: one that lives would write.
TEST_F(ChildTest, TheWatchdogEndsTheWholeGroup) {
    EXPECT_EQ(run("(sleep 1; echo late > late.txt) & sleep 60", milliseconds(100)).how,
              How::timed_out);
    std::this_thread::sleep_for(milliseconds(1500));
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / "late.txt"));
}

TEST_F(ChildTest, AProgramThatIsNotThereIsAnError) {
    EXPECT_THROW(run_child({"/no/such/program"}, folder_.path(), folder_.path() / "out.txt",
                           milliseconds(1000)),
                 std::system_error);
}

TEST_F(ChildTest, ASignalEndsTheChildrenAndNotThisProcess) {
    const ChildGuard guard;
    std::jthread later([] {
        std::this_thread::sleep_for(milliseconds(200));
        kill(getpid(), SIGTERM);
    });
    EXPECT_THROW(run("sleep 60"), Interrupted);
    EXPECT_EQ(ChildGuard::signal(), SIGTERM);
}

}  // namespace
}  // namespace zeroproof::harness
