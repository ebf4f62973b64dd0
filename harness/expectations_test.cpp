#include "harness/expectations.h"

#include <gtest/gtest.h>

#include <fstream>

#include "harness/temporary_folder.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {
namespace {

class Expectations : public testing::Test {
  protected:
    std::vector<Expectation> read(const std::string& text) {
        const std::string file = (folder_.path() / "expect.json").string();
        std::ofstream(file) << text;
        return read_expectations(file);
    }

    TemporaryFolder folder_;
};

TEST_F(Expectations, RefusesUnknownClausesEmptyReasonsAndUnknownKeys) {
    for (const char* text :
         {R"({"expectations": [{"clause": "NO.SUCH", "cases": "*", "fails_because": "x"}]})",
          R"({"expectations": [{"clause": "TIED.SUM", "cases": "*", "fails_because": ""}]})",
          R"({"expectations": [{"clause": "TIED.SUM", "cases": "*"}]})", R"({"rows": []})", "{"})
        EXPECT_THROW(read(text), scenarios::BadInput) << text;
}

TEST_F(Expectations, MarksWhatFailsAndReportsWhatDoesNot) {
    const suites::Clause* clause = suites::find_clause("TIED.SUM");
    Case failing;
    failing.id = "tied/a";
    Case passing;
    passing.id = "tied/b";
    Record record;
    CaseResult failed;
    failed.c = &failing;
    failed.clauses = {{clause, {Verdict::fail, {}, {}, 0}, {}}};
    CaseResult passed;
    passed.c = &passing;
    passed.clauses = {{clause, {}, {}}};
    record.cases = {failed, passed};
    EXPECT_EQ(record.unexpected_failures(), 1u);

    apply_expectations({{"TIED.SUM", "tied/a", "known"}}, record);
    EXPECT_EQ(record.unexpected_failures(), 0u);
    EXPECT_TRUE(record.broken_expectations.empty());
    EXPECT_EQ(exit_code(record), 0);

    apply_expectations({{"TIED.SUM", "tied/b", "known"}, {"TIED.SUM", "gone", "known"}}, record);
    EXPECT_EQ(record.broken_expectations.size(), 2u);
    EXPECT_EQ(exit_code(record), 1);
}

// An expected end of a run is told by its clause; another one is not hidden by it.
TEST_F(Expectations, CoverRunsThatBreakOff) {
    const suites::Clause* end = suites::find_clause("LIVENESS.END");
    Case c;
    c.id = "sizes/a";
    CaseResult broken;
    broken.c = &c;
    broken.status = suites::RunStatus::failed;
    broken.clauses = {
        {end, {Verdict::fail, {}, {}, 0}, {}},
        {suites::find_clause("UNUSED.ZERO"), {Verdict::not_exercised, {}, {}, 0}, {}}};
    Record record;
    record.cases = {broken};
    apply_expectations({{"LIVENESS.END", "sizes/a", "known"}}, record);
    EXPECT_EQ(exit_code(record), 0);

    CaseResult untold = broken;
    untold.clauses = {{end, {Verdict::not_exercised, {}, {}, 0}, {}}};
    record.cases.push_back(untold);
    EXPECT_EQ(exit_code(record), 4);
}

}  // namespace
}  // namespace zeroproof::harness
