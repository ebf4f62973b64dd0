// Verdicts: what did not run is never a pass, whatever the clause.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "suites/conformance/clause.h"
#include "suites/conformance/comparison.h"
#include "suites/conformance/family.h"

namespace zeroproof::suites {
namespace {

Declaration declaration() {
    Declaration d;
    d.name = "nobody";
    d.stages = {0, 1, 2, 3};
    d.precisions = {Precision::fp32, Precision::bf16, Precision::fp16};
    d.actions = common_actions();
    return d;
}

Case case_of(const std::string& extra) {
    return read_family(R"({"family": "f", "purpose": "p", "program": ["window"],
                           "parameters": [{"name": "a", "shape": [1]}])" +
                           extra + "}",
                       "f.json")
        .front();
}

// As little as a completed run of a case without a reload can leave behind.
Evidence least_evidence(const Case& c) {
    Snapshot snapshot;
    for (const ParameterCase& parameter : c.parameters)
        snapshot.weights.emplace_back(parameter.elements());
    snapshot.owned.push_back({0, 0, 1, {}, {0}, {0}, {0}});
    RankEvidence rank;
    rank.snapshots = {snapshot, snapshot};
    rank.snapshots[1].action = 1;  // the step, behind the window's micro-step
    rank.snapshots[1].owned[0].gradient = {0};
    Evidence evidence;
    evidence.segments.push_back(
        {c.ranks, c.stage, std::vector<RankEvidence>(static_cast<std::size_t>(c.ranks), rank)});
    return evidence;
}

Judgement judged(const Clause& clause, const Case& c, Evidence evidence, RunStatus status,
                 const Declaration& d = declaration()) {
    evidence.status = status;
    evidence.message = "told so";
    const auto expected = c.transport ? std::vector<Expected>{} : expect(c);
    return judge(clause, {c, d, evidence, expected, nullptr});
}

Clause with(std::string_view name, Judgement (*act)(const Context&)) {
    return {name, "A sentence.", "a source", "", "", [](const Case&) { return true; }, act};
}
Judgement passes(const Context&) {
    return {};
}
Judgement throws(const Context&) {
    throw std::out_of_range("evidence of no shape");
}

TEST(Judge, StatusOfTheRunDecidesBeforeTheClause) {
    const Clause ordinary = with("MOMENT.ANY", passes);
    const Case inside = case_of("");
    const Case outside = case_of(R"(, "features": ["offload"])");
    const struct {
        const Case& c;
        RunStatus status;
        Verdict verdict;
    } rows[] = {
        {inside, RunStatus::completed, Verdict::pass},
        {inside, RunStatus::rejected, Verdict::not_exercised},
        {inside, RunStatus::failed, Verdict::not_exercised},
        {inside, RunStatus::environment, Verdict::environment},
        {outside, RunStatus::rejected, Verdict::rejected},
        {outside, RunStatus::failed, Verdict::not_exercised},
        {outside, RunStatus::environment, Verdict::environment},
    };
    for (const auto& [c, status, verdict] : rows) {
        const Judgement judgement = judged(ordinary, c, least_evidence(c), status);
        EXPECT_EQ(judgement.verdict, verdict) << name_of(judgement.verdict);
        EXPECT_EQ(judgement.note.empty(), verdict == Verdict::pass);
    }
}

TEST(Judge, ClauseThatThrowsIsAFaultOfTheHarness) {
    const Judgement judgement = judged(with("MOMENT.ANY", throws), case_of(""),
                                       least_evidence(case_of("")), RunStatus::completed);
    EXPECT_EQ(judgement.verdict, Verdict::harness_error);
    EXPECT_EQ(judgement.note, "evidence of no shape");
}

// A deadlock must fail somewhere, and an unwarranted refusal too.
TEST(Judge, EndAndRefusalAreJudgedByTheirOwnClauses) {
    const Clause& end = *find_clause("LIVENESS.END");
    const Clause& reject = *find_clause("REJECT.CLEAR");
    const Case inside = case_of("");
    const Case outside = case_of(R"(, "features": ["offload"])");
    Declaration narrow = declaration();
    narrow.stages = {2};
    const struct {
        const Clause& clause;
        const Case& c;
        RunStatus status;
        Declaration declaration;
        Verdict verdict;
    } rows[] = {
        {end, inside, RunStatus::completed, declaration(), Verdict::pass},
        {end, inside, RunStatus::failed, declaration(), Verdict::fail},
        {end, inside, RunStatus::rejected, declaration(), Verdict::not_exercised},
        {end, inside, RunStatus::environment, declaration(), Verdict::environment},
        {reject, inside, RunStatus::completed, declaration(), Verdict::pass},
        {reject, inside, RunStatus::rejected, declaration(), Verdict::fail},
        {reject, outside, RunStatus::rejected, declaration(), Verdict::rejected},
        {reject, outside, RunStatus::completed, declaration(), Verdict::fail},
        {reject, outside, RunStatus::failed, declaration(), Verdict::fail},
        {reject, inside, RunStatus::rejected, narrow, Verdict::rejected},
        {reject, inside, RunStatus::completed, narrow, Verdict::fail},
        {reject, outside, RunStatus::environment, declaration(), Verdict::environment},
        {reject, inside, RunStatus::environment, declaration(), Verdict::environment},
        {reject, inside, RunStatus::failed, declaration(), Verdict::not_exercised},
    };
    for (const auto& [clause, c, status, d, verdict] : rows) {
        const Judgement judgement = judged(clause, c, {}, status, d);
        EXPECT_EQ(judgement.verdict, verdict)
            << clause.name << ", status " << static_cast<int>(status) << ": "
            << name_of(judgement.verdict);
        if (verdict == Verdict::fail) {
            EXPECT_NE(judgement.first.expected, "");
            EXPECT_NE(judgement.first.seen, "");
        }
    }
}

// One case of each family: evidence without any content, and runs that did not complete.
TEST(Judge, NoClausePassesOnARunThatShowsNothing) {
    std::map<std::string, Case> cases;
    for (Case& c : all_cases())
        if (c.ranks > 1) cases.emplace(c.family, std::move(c));
    // The end and the refusal are seen from the status alone.
    const auto needs_no_evidence = [](const Clause& clause) {
        return clause.name == "LIVENESS.END" || clause.name == "REJECT.CLEAR";
    };
    std::size_t judged_count = 0;
    for (const auto& [family, c] : cases)
        for (const Clause& clause : all_clauses()) {
            if (!clause.applies(c)) continue;
            for (const RunStatus status : {RunStatus::completed, RunStatus::rejected,
                                           RunStatus::failed, RunStatus::environment}) {
                if (status == RunStatus::completed && needs_no_evidence(clause)) continue;
                const Judgement judgement = judged(clause, c, {}, status);
                EXPECT_TRUE(judgement.verdict != Verdict::pass &&
                            judgement.verdict != Verdict::harness_error)
                    << clause.name << " on " << c.id << ", status " << static_cast<int>(status);
                ++judged_count;
            }
        }
    EXPECT_GT(judged_count, 1000u);
}

// Clauses index evidence by what the case says: a gap must not become a crash, nor a pass.
TEST(Judge, GapsInEvidenceAreNotObservableAndNamed) {
    const Case c = case_of(R"(, "ranks": 2)");
    const struct {
        const char* named;
        void (*spoil)(Evidence&);
    } rows[] = {
        {"1 parts", [](Evidence& e) { e.segments.clear(); }},
        {"all 2 ranks", [](Evidence& e) { e.segments[0].by_rank.pop_back(); }},
        {"a snapshot after every", [](Evidence& e) { e.segments[0].by_rank[1].snapshots.clear(); }},
        {"action of each", [](Evidence& e) { e.segments[0].by_rank[1].collectives.resize(1); }},
        {"an echo",
         [](Evidence& e) {
             e.segments[0].by_rank[1].echoes.push_back({0, false, 9, 0, {}});
         }},
        {"after every action",
         [](Evidence& e) { e.segments[0].by_rank[1].snapshots[1].action = 2; }},
        {"the weights", [](Evidence& e) { e.segments[0].by_rank[1].snapshots[1].weights = {}; }},
        {"of a", [](Evidence& e) { e.segments[0].by_rank[1].snapshots[1].weights = {{}}; }},
        {"moments",
         [](Evidence& e) { e.segments[0].by_rank[1].snapshots[1].owned[0].variance = {}; }},
        {"a parameter",
         [](Evidence& e) { e.segments[0].by_rank[1].snapshots[1].owned[0].parameter = 1; }},
        {"gradients of action 1",
         [](Evidence& e) { e.segments[0].by_rank[1].snapshots[1].owned[0].gradient = {}; }},
        {"in stage", [](Evidence& e) { e.segments[0].stage = 1; }},
        {"owned at first",
         [](Evidence& e) { e.segments[0].by_rank[1].snapshots[1].owned.clear(); }},
    };
    const Clause ordinary = with("MOMENT.ANY", passes);
    EXPECT_EQ(judged(ordinary, c, least_evidence(c), RunStatus::completed).verdict, Verdict::pass);
    for (const auto& [named, spoil] : rows) {
        Evidence evidence = least_evidence(c);
        spoil(evidence);
        const Judgement judgement = judged(ordinary, c, evidence, RunStatus::completed);
        EXPECT_EQ(judgement.verdict, Verdict::not_observable) << named;
        EXPECT_NE(judgement.note.find(named), std::string::npos) << judgement.note;
    }
}

TEST(Comparison, ComparingNothingIsNoPassAndTheFirstDifferenceIsKept) {
    Comparison none;
    EXPECT_EQ(none.judgement("why").verdict, Verdict::not_exercised);
    EXPECT_EQ(none.judgement("why").note, "why");
    Comparison some;
    for (int i = 0; i < 5; ++i)
        some.check(i % 2 == 0, [&] {
            return Discrepancy{.quantity = "q", .expected = "a", .seen = "b", .element = i};
        });
    const Judgement judgement = some.judgement();
    EXPECT_EQ(judgement.verdict, Verdict::fail);
    EXPECT_EQ(judgement.first.element, 1);
    EXPECT_EQ(judgement.more_like_it, 1u);
}

TEST(Comparison, BoundsTakeNoNaNAndInfinityOnlyForItself) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double infinity = std::numeric_limits<double>::infinity();
    EXPECT_TRUE(matches(1.5, {1, 0.5}));
    EXPECT_FALSE(matches(1.5000001, {1, 0.5}));
    EXPECT_FALSE(matches(nan, {1, infinity}));
    EXPECT_FALSE(matches(infinity, {1, infinity}));
    EXPECT_TRUE(matches(infinity, {infinity, 0}));
    EXPECT_FALSE(matches(-infinity, {infinity, 0}));
    EXPECT_FALSE(same_bits(0.0f, -0.0f));
}

TEST(Comparison, StepsRanksAndStagesFollowTheProgram) {
    const Case c = read_family(R"({"family": "f", "purpose": "p", "ranks": 2, "stage": 1,
                                   "resume_ranks": 3, "resume_stage": 2,
                                   "parameters": [{"name": "a", "shape": [1]}],
                                   "program": ["window", "reload", "window"]})",
                               "f.json")
                       .front();
    const int steps[] = {0, 0, 1, 1, 1, 2};
    for (int action = -1; action < 5; ++action) {
        EXPECT_EQ(step_number(c, action), steps[action + 1]) << action;
        EXPECT_EQ(after_reload(c, action), action >= 2);
        EXPECT_EQ(ranks_at(c, action), action >= 2 ? 3 : 2);
        EXPECT_EQ(stage_at(c, action), action >= 2 ? 2 : 1);
    }
}

}  // namespace
}  // namespace zeroproof::suites
