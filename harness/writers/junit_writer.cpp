#include <fmt/format.h>

#include <map>
#include <pugixml.hpp>
#include <sstream>
#include <vector>

#include "harness/writers/failure_block.h"
#include "harness/writers/text.h"
#include "harness/writers/writer.h"

namespace zeroproof::harness {

namespace {

struct Counts {
    std::size_t tests = 0;
    std::size_t failures = 0;
    std::size_t errors = 0;
    std::size_t skipped = 0;
    double seconds = 0;
};

void set(pugi::xml_node node, const char* name, std::string_view value) {
    node.append_attribute(name).set_value(printable(value).c_str());
}

void set_counts(pugi::xml_node node, const Counts& counts) {
    set(node, "tests", fmt::to_string(counts.tests));
    set(node, "failures", fmt::to_string(counts.failures));
    set(node, "errors", fmt::to_string(counts.errors));
    set(node, "skipped", fmt::to_string(counts.skipped));
    set(node, "time", fmt::format("{:.6f}", counts.seconds));
}

void set_property(pugi::xml_node properties, std::string_view name, std::string_view value) {
    pugi::xml_node property = properties.append_child("property");
    set(property, "name", name);
    set(property, "value", value);
}

void add_failure(pugi::xml_node test, const Record& record, const CaseResult& result,
                 const ClauseResult& clause) {
    const suites::Judgement& judgement = clause.judgement;
    pugi::xml_node failure = test.append_child("failure");
    set(failure, "message",
        fmt::format("{}: expected {}, seen {}", judgement.first.quantity, judgement.first.expected,
                    judgement.first.seen));
    set(failure, "type", clause.clause->name);
    const std::string others =
        judgement.more_like_it == 0
            ? ""
            : counted(judgement.more_like_it, "more place") + " in this case";
    const auto lines = lines_of(failure_block(record, result, clause, others));
    failure.text().set(fmt::format("\n{}\n", fmt::join(lines, "\n")).c_str());
}

void add_test(pugi::xml_node suite, const Record& record, const CaseResult& result,
              const ClauseResult& clause, Counts& counts) {
    // A case is run once for all its clauses: each takes a part, so that the sum is right.
    const double seconds = result.seconds / static_cast<double>(result.clauses.size());
    pugi::xml_node test = suite.append_child("testcase");
    set(test, "classname", clause.clause->name);
    set(test, "name", result.c->id);
    set(test, "time", fmt::format("{:.6f}", seconds));
    ++counts.tests;
    counts.seconds += seconds;
    const suites::Judgement& judgement = clause.judgement;
    const auto add = [&](const char* element, std::string_view message) {
        set(test.append_child(element), "message", message);
    };
    switch (judgement.verdict) {
        case Verdict::pass: return;
        case Verdict::deviates:
            test.append_child("system-out")
                .append_child(pugi::node_pcdata)
                .set_value(printable("deviates as declared: " + judgement.note).c_str());
            return;
        case Verdict::fail:
            if (is_unexpected_failure(clause)) {
                ++counts.failures;
                add_failure(test, record, result, clause);
            } else {
                ++counts.skipped;
                add("skipped", "expected failure: " + clause.expected_because);
            }
            return;
        case Verdict::rejected:
        case Verdict::not_declared:
        case Verdict::not_exercised:
        case Verdict::not_observable:
            ++counts.skipped;
            add("skipped",
                fmt::format("{}: {}", suites::name_of(judgement.verdict), judgement.note));
            return;
        case Verdict::environment:
        case Verdict::harness_error: break;
    }
    ++counts.errors;
    add("error", fmt::format("{}: {}", suites::name_of(judgement.verdict), judgement.note));
}

void add_expectations(pugi::xml_node root, const Record& record, Counts& all) {
    if (record.broken_expectations.empty()) return;
    pugi::xml_node suite = root.append_child("testsuite");
    set(suite, "name", "expectations");
    Counts counts;
    counts.tests = counts.failures = record.broken_expectations.size();
    set_counts(suite, counts);
    for (const std::string& broken : record.broken_expectations) {
        pugi::xml_node test = suite.append_child("testcase");
        set(test, "classname", "expectations");
        set(test, "name", broken);
        set(test.append_child("failure"), "message", broken);
    }
    all.tests += counts.tests;
    all.failures += counts.failures;
}

}  // namespace

std::string to_junit(const Record& record) {
    struct Test {
        const CaseResult* result;
        const ClauseResult* clause;
    };
    std::map<std::string_view, std::vector<Test>> by_clause;
    for (const CaseResult& result : record.cases)
        for (const ClauseResult& clause : result.clauses)
            by_clause[clause.clause->name].push_back({&result, &clause});

    pugi::xml_document document;
    pugi::xml_node declaration = document.append_child(pugi::node_declaration);
    set(declaration, "version", "1.0");
    set(declaration, "encoding", "UTF-8");
    pugi::xml_node root = document.append_child("testsuites");
    set(root, "name", "zeroproof " + record.subject);
    Counts all;
    for (const auto& [name, tests] : by_clause) {
        pugi::xml_node suite = root.append_child("testsuite");
        set(suite, "name", name);
        pugi::xml_node properties = suite.append_child("properties");
        set_property(properties, "sentence", tests.front().clause->clause->sentence);
        set_property(properties, "source", tests.front().clause->clause->source);
        Counts counts;
        for (const Test& test : tests) add_test(suite, record, *test.result, *test.clause, counts);
        set_counts(suite, counts);
        all.tests += counts.tests;
        all.failures += counts.failures;
        all.errors += counts.errors;
        all.skipped += counts.skipped;
    }
    add_expectations(root, record, all);
    all.seconds = record.seconds;
    set_counts(root, all);
    std::ostringstream out;
    document.save(out, "  ", pugi::format_default, pugi::encoding_utf8);
    return out.str();
}

}  // namespace zeroproof::harness
