#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "harness/version.h"
#include "harness/writers/json_lines.h"
#include "harness/writers/writer.h"

namespace zeroproof::harness {

namespace {

using Json = nlohmann::ordered_json;

std::string_view name_of(suites::RunStatus status) {
    constexpr std::array<std::string_view, 5> names = {"completed", "rejected", "failed",
                                                       "environment", "adapter failed"};
    return names[static_cast<std::size_t>(status)];
}

Json totals_of(const Record& record) {
    Json totals = Json::object();
    for (const Verdict verdict :
         {Verdict::pass, Verdict::deviates, Verdict::fail, Verdict::rejected, Verdict::not_declared,
          Verdict::not_exercised, Verdict::not_observable, Verdict::environment,
          Verdict::harness_error})
        totals[std::string(suites::name_of(verdict))] = record.count(verdict);
    totals["unexpected failures"] = record.unexpected_failures();
    return totals;
}

// The clauses that were asked, so that a report can be made of the record alone.
Json clauses_of(const Record& record) {
    std::map<std::string_view, const suites::Clause*> asked;
    for (const CaseResult& result : record.cases)
        for (const ClauseResult& clause : result.clauses)
            asked[clause.clause->name] = clause.clause;
    Json clauses = Json::array();
    for (const auto& [name, clause] : asked)
        clauses.push_back({{"clause", name},
                           {"sentence", clause->sentence},
                           {"source", clause->source},
                           {"fault_classes", clause->fault_classes}});
    return clauses;
}

Json measurement_of(const Measurement& m) {
    return {{"case", m.c->id},
            {"stage", m.c->stage},
            {"ranks", m.c->ranks},
            {"precision", suites::name_of(m.c->precision)},
            {"micro_steps", m.c->micro_steps},
            {"phi", m.phi},
            {"bytes_formula", m.bytes_formula},
            {"bytes_nominal", m.bytes_nominal},
            {"bytes_exact", m.bytes_exact},
            {"bytes_seen", m.bytes_seen},
            {"elements_formula", m.elements_formula},
            {"elements_nominal", m.elements_nominal},
            {"elements_exact", m.elements_exact},
            {"elements_seen", m.elements_seen},
            {"elements_sent", m.elements_sent}};
}

Json failure_of(const suites::Discrepancy& d) {
    Json failure = {{"quantity", d.quantity}, {"expected", d.expected}, {"seen", d.seen}};
    if (d.rank >= 0) failure["rank"] = d.rank;
    if (d.owner >= 0) failure["owner"] = d.owner;
    if (d.action >= -1) failure["action"] = d.action;
    if (d.step >= 0) failure["step"] = d.step;
    if (!d.parameter.empty()) failure["parameter"] = d.parameter;
    if (d.element >= 0) failure["element"] = d.element;
    if (!d.diagnosis.empty()) failure["diagnosis"] = d.diagnosis;
    return failure;
}

Json clause_of(const ClauseResult& result) {
    const suites::Judgement& judgement = result.judgement;
    Json clause = {{"clause", result.clause->name},
                   {"verdict", suites::name_of(judgement.verdict)}};
    if (!judgement.note.empty()) clause["note"] = judgement.note;
    if (!result.expected_because.empty()) clause["expected_because"] = result.expected_because;
    if (judgement.verdict == Verdict::fail) {
        clause["failure"] = failure_of(judgement.first);
        if (judgement.more_like_it > 0) clause["more_like_it"] = judgement.more_like_it;
    }
    return clause;
}

Json case_of(const CaseResult& result) {
    const Case& c = *result.c;
    Json out = {{"id", c.id}, {"family", c.family}};
    if (!c.transport) {
        out["stage"] = c.stage;
        out["precision"] = suites::name_of(c.precision);
        out["micro_steps"] = c.micro_steps;
    }
    out["ranks"] = c.ranks;
    out["status"] = name_of(result.status);
    if (!result.message.empty()) out["message"] = result.message;
    out["seconds"] = result.seconds;
    Json passed = Json::array();
    Json others = Json::array();
    for (const ClauseResult& clause : result.clauses) {
        // A pass says no more than its name; most of a record are passes.
        const bool bare = clause.judgement.verdict == Verdict::pass &&
                          clause.judgement.note.empty() && clause.expected_because.empty();
        if (bare)
            passed.push_back(clause.clause->name);
        else
            others.push_back(clause_of(clause));
    }
    out["passed"] = std::move(passed);
    out["clauses"] = std::move(others);
    return out;
}

}  // namespace

std::string to_json(const Record& record) {
    Json root = {{"record_version", kRecordVersion},
                 {"program_version", kVersion},
                 {"subject", record.subject},
                 {"command", record.command},
                 {"started", record.started},
                 {"seconds", record.seconds},
                 {"jobs", record.jobs},
                 {"seed", record.seed},
                 {"exit_code", exit_code(record)},
                 {"totals", totals_of(record)},
                 {"configurations", record.cases.size()},
                 {"broken_expectations", record.broken_expectations},
                 {"clauses", clauses_of(record)}};
    Json& measurements = root["measurements"] = Json::array();
    for (const Measurement& m : record.measurements) measurements.push_back(measurement_of(m));
    Json& cases = root["cases"] = Json::array();
    for (const CaseResult& result : record.cases) cases.push_back(case_of(result));

    return json_by_lines(root);
}

}  // namespace zeroproof::harness
