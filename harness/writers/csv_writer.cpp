#include <fmt/format.h>

#include "harness/writers/text.h"
#include "harness/writers/writer.h"

namespace zeroproof::harness {

namespace {

// RFC 4180: quoted where it must be, quotes doubled.
std::string field_of(std::string_view text) {
    const std::string field = printable_lines(text);
    if (field.find_first_of("\",\n") == std::string::npos) return field;
    std::string out = "\"";
    for (const char c : field) {
        if (c == '"') out += '"';
        out += c;
    }
    return out + "\"";
}

// Empty where it does not apply.
std::string place(long long number) {
    return number < 0 ? "" : fmt::to_string(number);
}

std::string note_of(const ClauseResult& result) {
    if (result.judgement.verdict != Verdict::fail) return result.judgement.note;
    if (!result.expected_because.empty()) return "expected failure: " + result.expected_because;
    const suites::Discrepancy& d = result.judgement.first;
    return d.diagnosis.empty() ? d.quantity : d.quantity + ": " + d.diagnosis;
}

}  // namespace

std::string to_csv(const Record& record) {
    std::string out = "case,clause,verdict,rank,step,parameter,element,expected,seen,note\r\n";
    for (const CaseResult& result : record.cases)
        for (const ClauseResult& clause : result.clauses) {
            const suites::Discrepancy& d = clause.judgement.first;
            out +=
                fmt::format("{},{},{},{},{},{},{},{},{},{}\r\n", field_of(result.c->id),
                            clause.clause->name, suites::name_of(clause.judgement.verdict),
                            place(d.rank), place(d.step), field_of(d.parameter), place(d.element),
                            field_of(d.expected), field_of(d.seen), field_of(note_of(clause)));
        }
    return out;
}

}  // namespace zeroproof::harness
