#include "harness/expectations.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "harness/selection.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {

std::vector<Expectation> read_expectations(const std::string& file) {
    const scenarios::Json document = scenarios::parse_json(scenarios::read_text_file(file), file);
    const scenarios::JsonReader reader(document, file);
    reader.allow({"expectations"});
    std::vector<Expectation> expectations;
    for (const scenarios::JsonReader& row : reader.at("expectations").items()) {
        row.allow({"clause", "cases", "fails_because"});
        Expectation expectation{row.at("clause").text(), row.at("cases").text(),
                                row.at("fails_because").text()};
        if (suites::find_clause(expectation.clause) == nullptr)
            row.at("clause").fail(fmt::format("no clause is named \"{}\"", expectation.clause));
        if (expectation.reason.empty())
            row.at("fails_because").fail("an expected failure needs a reason");
        expectations.push_back(std::move(expectation));
    }
    return expectations;
}

void apply_expectations(const std::vector<Expectation>& expectations, Record& record) {
    for (const Expectation& expectation : expectations) {
        bool is_stale = true;
        for (CaseResult& result : record.cases) {
            if (!matches_pattern(expectation.cases, result.c->id)) continue;
            for (ClauseResult& clause : result.clauses) {
                if (clause.clause->name != expectation.clause) continue;
                is_stale = false;
                if (clause.judgement.verdict == Verdict::fail)
                    clause.expected_because = expectation.reason;
                else
                    record.broken_expectations.push_back(fmt::format(
                        "{} was expected to fail in {} ({}), but the verdict is {}: remove the row "
                        "or narrow it",
                        expectation.clause, result.c->id, expectation.reason,
                        name_of(clause.judgement.verdict)));
            }
        }
        if (is_stale)
            record.broken_expectations.push_back(fmt::format(
                "{} is expected to fail in '{}' ({}), which matches no case of this run",
                expectation.clause, expectation.cases, expectation.reason));
    }
}

}  // namespace zeroproof::harness
