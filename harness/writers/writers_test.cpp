// Each format of one small record against golden text.
// After a change that is meant: ZEROPROOF_REGENERATE_GOLDEN=1 harness_test
// --gtest_filter='Writers.*', then read the difference.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>
#include <sstream>

#include "harness/version.h"
#include "harness/writers/text.h"
#include "harness/writers/writer.h"

namespace zeroproof::harness {
namespace {

namespace fs = std::filesystem;
using suites::ActionKind;
using suites::Clause;

// Quotes, commas, line ends, markup, controls, and bytes that are no UTF-8.
constexpr std::string_view kHostile =
    "a \"b\", 'c'\n<d> & ``` | *e* \x1b[31m\r\t\x01 \xff\xc3 \xc2\x9b Φ";

const Clause kMean{"GRADIENT.MEAN",
                   "The gradient is the mean over ranks.",
                   "arXiv 1910.02054",
                   "FC06, FC07",
                   "",
                   nullptr,
                   nullptr};
const Clause kWeight{
    "WEIGHT.CAST", "The weight is the master, rounded.", "docs, Adam", "FC22", "", nullptr,
    nullptr};
const Clause kSkip{
    "SKIP.ATOMIC", "A skipped step changes nothing.", "docs, Skip", "FC20", "", nullptr, nullptr};
const Clause kTransport{"TRANSPORT.REDUCTION",
                        "A reduction delivers the sum.",
                        "docs, Transport",
                        "COLL",
                        "",
                        nullptr,
                        nullptr};

Case case_of(std::string id, int stage, suites::Precision precision, int micro_steps) {
    Case c;
    c.family = "family";
    c.id = std::move(id);
    c.stage = stage;
    c.ranks = 4;
    c.precision = precision;
    c.micro_steps = micro_steps;
    c.program = {{ActionKind::micro_step}, {ActionKind::micro_step}, {ActionKind::step},
                 {ActionKind::micro_step}, {ActionKind::evaluate},   {ActionKind::micro_step},
                 {ActionKind::step}};
    return c;
}

// Cases outlive records.
const Case& good_case() {
    static const Case c = case_of("family/stage=1", 1, suites::Precision::fp32, 1);
    return c;
}
const Case& bad_case() {
    static const Case c = case_of("family/stage=3,name='x'", 3, suites::Precision::bf16, 2);
    return c;
}
const Case& transport_case() {
    static const Case c = [] {
        Case made = case_of("transport/count=7", 0, suites::Precision::fp32, 1);
        made.transport.emplace();
        return made;
    }();
    return c;
}

suites::Judgement failure() {
    return {Verdict::fail,
            {},
            {.quantity = "reduced gradient",
             .expected = "0.5 (0x1p-1)",
             .seen = "0.25 (0x1p-2)",
             .rank = 1,
             .owner = 2,
             .action = 5,
             .step = 2,
             .parameter = std::string(kHostile),
             .element = 7,
             .diagnosis = "the contribution of rank 3 is missing"},
            12};
}

Measurement measurement(const Case& c, std::size_t bytes_seen) {
    return {.c = &c,
            .phi = 10,
            .bytes_formula = "4 phi + 12 phi / N",
            .bytes_nominal = 70.5,
            .bytes_exact = 84,
            .bytes_seen = bytes_seen,
            .elements_formula = "2 phi",
            .elements_nominal = 20,
            .elements_exact = 24,
            .elements_seen = 24,
            .elements_sent = 18};
}

Record violating_record() {
    Record record;
    record.subject = "./my engine.so";
    record.command = "zeroproof verify './my engine.so' --json out.json";
    record.started = "2024-01-02T03:04:05Z";
    record.seconds = 2;
    record.cases = {
        {&good_case(),
         suites::RunStatus::completed,
         {},
         0.5,
         {{&kMean, {}},
          {&kWeight,
           {Verdict::fail, {}, {.quantity = "w", .expected = "1", .seen = "2"}, 0},
           "known, see known: rounds twice: \"rounds, twice\""},
          {&kSkip, {Verdict::not_exercised, std::string(kHostile), {}, 0}}}},
        {&bad_case(),
         suites::RunStatus::completed,
         {},
         0.25,
         {{&kMean, failure()}, {&kWeight, {}}}},
        {&bad_case(), suites::RunStatus::failed, "a rank threw", 0.25, {{&kMean, failure()}}},
        {&transport_case(), suites::RunStatus::completed, {}, 0, {{&kTransport, {}}}},
    };
    record.measurements = {measurement(good_case(), 84), measurement(bad_case(), 88)};
    record.broken_expectations = {"row 3: passed unexpectedly <GRADIENT.MEAN>"};
    return record;
}

Record conforming_record() {
    Record record = violating_record();
    record.subject = "reference";
    record.cases.resize(1);
    record.cases[0].clauses = {{&kMean, {}}, {&kWeight, {}}};
    record.measurements.resize(1);
    record.broken_expectations.clear();
    return record;
}

std::string content_of(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

void expect_golden(const std::string& name, const std::string& text) {
    const fs::path path = fs::path(ZEROPROOF_SOURCE_DIR) / "harness/writers/golden" / name;
    if (std::getenv("ZEROPROOF_REGENERATE_GOLDEN") != nullptr) write_whole(path, text);
    ASSERT_TRUE(fs::exists(path)) << name;
    EXPECT_EQ(text, content_of(path))
        << "If the change of " << name
        << " is meant, run this test with ZEROPROOF_REGENERATE_GOLDEN=1 and read the difference.";
}

TEST(Writers, Terminal) {
    expect_golden("violating.terminal.txt", to_terminal(violating_record(), false));
    expect_golden("conforming.terminal.txt", to_terminal(conforming_record(), false));
}

TEST(Writers, Markdown) {
    expect_golden("violating.markdown.txt", to_markdown(violating_record()));
}

TEST(Writers, Csv) {
    expect_golden("violating.csv.txt", to_csv(violating_record()));
}

TEST(Writers, Junit) {
    const std::string text = to_junit(violating_record());
    pugi::xml_document document;
    ASSERT_TRUE(document.load_string(text.c_str()));
    EXPECT_EQ(document.child("testsuites").attribute("failures").as_int(), 3);
    EXPECT_EQ(text.find_first_of("\x1b\x01\r"), std::string::npos);
    expect_golden("violating.junit.txt", text);
}

TEST(Writers, Json) {
    std::string text = to_json(violating_record());
    const nlohmann::json json = nlohmann::json::parse(text);
    EXPECT_EQ(json.at("record_version"), kRecordVersion);
    EXPECT_EQ(json.at("exit_code"), 1);
    const nlohmann::json& failed = json.at("cases").at(1).at("clauses").at(0);
    EXPECT_EQ(failed.at("failure").at("element"), 7);
    EXPECT_EQ(failed.at("more_like_it"), 12);
    EXPECT_EQ(json.at("cases").at(1).at("passed"), nlohmann::json{"WEIGHT.CAST"});
    // Even what is no UTF-8 comes back but for those bytes.
    const auto note = json.at("cases").at(0).at("clauses").at(1).at("note").get<std::string>();
    EXPECT_EQ(note.substr(0, kHostile.find('\xff')), kHostile.substr(0, kHostile.find('\xff')));

    const std::string version = "\"program_version\": \"" + std::string(kVersion) + '"';
    const std::size_t at = text.find(version);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, version.size(), "\"program_version\": \"VERSION\"");
    expect_golden("violating.json.txt", text);
}

TEST(Writers, ColourAddsNothingButEscapeSequences) {
    const std::string painted = to_terminal(violating_record(), true);
    std::string plain;
    for (std::size_t i = 0; i < painted.size(); ++i)
        if (painted[i] == '\x1b')
            i = painted.find('m', i);
        else
            plain += painted[i];
    EXPECT_NE(painted, plain);
    EXPECT_EQ(plain, to_terminal(violating_record(), false));
}

TEST(Writers, TheTerminalsTablesFitItsWidth) {
    Record record = violating_record();
    for (Measurement& m : record.measurements) {
        m.bytes_nominal = 123456.25;
        m.bytes_exact = m.elements_exact = 1234567;
        m.elements_nominal = m.elements_sent = 1234567;
    }
    std::istringstream lines(to_terminal(record, false));
    for (std::string line; std::getline(lines, line);) {
        if (line.find("zeroproof verify") != std::string::npos) continue;
        EXPECT_LE(columns_of(line), 100u) << line;
    }
}

TEST(Writers, TheTerminalShowsFewMeasurementsButThoseThatDiffer) {
    Record record = conforming_record();
    record.measurements.clear();
    for (std::size_t phi = 1; phi <= 100; ++phi) {
        Measurement m = measurement(good_case(), phi == 42 ? 85 : 84);
        m.phi = phi;
        record.measurements.push_back(m);
    }
    const std::string text = to_terminal(record, false);
    EXPECT_NE(text.find("DIFFER from the exact figure in 1 of 100 configurations"),
              std::string::npos);
    EXPECT_NE(text.find("Φ = 42\n"), std::string::npos);
    EXPECT_NE(text.find("Φ = 1\n"), std::string::npos);
    EXPECT_NE(text.find("Φ = 100\n"), std::string::npos);
    EXPECT_NE(text.find("and 84 more groups, in the record"), std::string::npos);
}

// "Conforms" and what was proved must not come from nothing.
TEST(Writers, NothingThatDidNotRunCountsAsProved) {
    Record record;
    record.subject = "reference";
    EXPECT_NE(to_terminal(record, false).find("inconclusive (exit code 3: nothing ran)"),
              std::string::npos);
    record = conforming_record();
    for (ClauseResult& clause : record.cases[0].clauses)
        clause.judgement = {Verdict::environment, "no GPU", {}, 0};
    const std::string text = to_terminal(record, false);
    EXPECT_NE(text.find("Nothing was proved."), std::string::npos);
    EXPECT_NE(text.find("inconclusive (exit code 4"), std::string::npos);
    EXPECT_NE(text.find("no GPU (2 verdicts)"), std::string::npos);
    EXPECT_EQ(text.find("✓"), std::string::npos);
}

TEST(Writers, WhatIsProvedNeedsEveryClauseOfTheClaim) {
    const Clause first{"MOMENT.FIRST", "", "", "", "", nullptr, nullptr};
    const Clause second{"MOMENT.SECOND", "", "", "", "", nullptr, nullptr};
    const Clause master{"MASTER.VALUE", "", "", "", "", nullptr, nullptr};
    Record record = conforming_record();
    auto& clauses = record.cases[0].clauses;
    clauses.push_back({&first, {}});
    clauses.push_back({&second, {}});
    constexpr std::string_view claim = "equals plain data-parallel Adam, element by element";
    EXPECT_EQ(to_terminal(record, false).find(claim), std::string::npos);
    clauses.push_back({&master, {}});
    EXPECT_NE(to_terminal(record, false).find(claim), std::string::npos);
    clauses.push_back({&kSkip, failure()});
    EXPECT_EQ(to_terminal(record, false).find(claim), std::string::npos);
}

}  // namespace
}  // namespace zeroproof::harness
