#include "harness/writers/remarks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "harness/writers/failure_block.h"
#include "harness/writers/text.h"

namespace zeroproof::harness {

namespace {

// More kinds of message than these are counted only.
constexpr std::size_t kMostKinds = 8;

// How often something was said, and where first.
struct Said {
    std::size_t count = 0;
    const Case* c = nullptr;
    const suites::Clause* clause = nullptr;
};
using ByNote = std::map<std::string, Said>;

// The most frequent first; `item_of` makes the line.
template <typename ItemOf>
Section most_frequent(std::string title, const ByNote& notes, const ItemOf& item_of) {
    std::vector<std::pair<std::string, Said>> sorted(notes.begin(), notes.end());
    std::ranges::stable_sort(sorted, std::ranges::greater{},
                             [](const auto& entry) { return entry.second.count; });
    Section section{std::move(title), {}};
    for (const auto& [note, said] : sorted) {
        if (section.items.size() == kMostKinds) {
            section.items.push_back({"", fmt::format("and {} more of other kinds, in the record",
                                                     sorted.size() - kMostKinds)});
            break;
        }
        section.items.push_back(item_of(note, said));
    }
    return section;
}

std::string or_nothing_said(const std::string& note) {
    return note.empty() ? "no reason given" : printable(note);
}

Section errors(const Record& record, Verdict verdict, std::string title) {
    ByNote notes;
    for (const CaseResult& result : record.cases)
        for (const ClauseResult& clause : result.clauses) {
            if (clause.judgement.verdict != verdict) continue;
            Said& said = notes[clause.judgement.note];
            if (said.count++ == 0) said = {1, result.c, clause.clause};
        }
    return most_frequent(
        std::move(title), notes, [&](const std::string& note, const Said& said) -> Item {
            return {"", fmt::format("{} ({}); run again: {}", or_nothing_said(note),
                                    counted(said.count, "verdict"),
                                    rerun_command(record, *said.clause, *said.c))};
        });
}

Section without_end(const Record& record) {
    ByNote messages;
    for (const CaseResult& result : record.cases) {
        if (result.status != suites::RunStatus::failed) continue;
        Said& said = messages[result.message];
        if (said.count++ == 0) said.c = result.c;
    }
    return most_frequent(
        "Runs that did not come to their end", messages,
        [](const std::string& message, const Said& said) -> Item {
            return {printable(said.c->id),
                    fmt::format("{} ({})", or_nothing_said(message), counted(said.count, "case"))};
        });
}

struct Reasons {
    std::size_t asked = 0;
    std::size_t given = 0;
    std::map<std::string, std::size_t> notes;
    std::string most_common() const {
        const auto most =
            std::ranges::max_element(notes, {}, [](const auto& entry) { return entry.second; });
        return or_nothing_said(most == notes.end() ? std::string() : most->first);
    }
};

// By the clause's name, for those that got the verdict somewhere.
std::map<std::string_view, Reasons> reasons_for(const Record& record, Verdict verdict) {
    std::map<std::string_view, Reasons> by_clause;
    for (const CaseResult& result : record.cases)
        for (const ClauseResult& clause : result.clauses) {
            Reasons& reasons = by_clause[clause.clause->name];
            ++reasons.asked;
            if (clause.judgement.verdict != verdict) continue;
            ++reasons.given;
            ++reasons.notes[clause.judgement.note];
        }
    std::erase_if(by_clause, [](const auto& entry) { return entry.second.given == 0; });
    return by_clause;
}

Section never_exercised(const Record& record) {
    Section section{"Never exercised: these clauses say nothing about the subject", {}};
    const auto by_clause = reasons_for(record, Verdict::not_exercised);
    for (const suites::Clause* clause : record.never_exercised()) {
        const auto at = by_clause.find(clause->name);
        if (at == by_clause.end()) continue;
        section.items.push_back(
            {std::string(clause->name),
             fmt::format("{} ({})", at->second.most_common(), counted(at->second.given, "case"))});
    }
    return section;
}

Section not_observable(const Record& record) {
    Section section{"Not observable in this subject's evidence", {}};
    for (const auto& [name, reasons] : reasons_for(record, Verdict::not_observable))
        section.items.push_back(
            {std::string(name), fmt::format("{} ({} of {})", reasons.most_common(), reasons.given,
                                            counted(reasons.asked, "case"))});
    return section;
}

Section outside(const Record& record) {
    Section section{"Outside what the subject declares", {}};
    const auto rejections = [](const CaseResult& result) {
        return std::ranges::any_of(result.clauses, [](const ClauseResult& clause) {
            return clause.judgement.verdict == Verdict::rejected;
        });
    };
    const auto rejected = static_cast<std::size_t>(std::ranges::count_if(record.cases, rejections));
    if (rejected > 0)
        section.items.push_back(
            {"", fmt::format("{} rejected, as it should be", counted(rejected, "case"))});
    for (const auto& [name, reasons] : reasons_for(record, Verdict::not_declared))
        section.items.push_back(
            {std::string(name), fmt::format("not declared: {} ({})", reasons.most_common(),
                                            counted(reasons.given, "case"))});
    return section;
}

Section deviations(const Record& record) {
    Section section{"Deviates from the paper, as the subject declares", {}};
    for (const auto& [name, reasons] : reasons_for(record, Verdict::deviates))
        section.items.push_back(
            {std::string(name), fmt::format("{} ({} of {})", printable(reasons.most_common()),
                                            reasons.given, counted(reasons.asked, "case"))});
    return section;
}

Section expected_failures(const Record& record) {
    std::map<std::pair<std::string_view, std::string>, std::size_t> known;
    for (const CaseResult& result : record.cases)
        for (const ClauseResult& clause : result.clauses)
            if (clause.judgement.verdict == Verdict::fail && !is_unexpected_failure(clause))
                ++known[{clause.clause->name, clause.expected_because}];
    Section section{"Expected failures", {}};
    for (const auto& [which, count] : known)
        section.items.push_back(
            {std::string(which.first),
             fmt::format("{} ({})", printable(which.second), counted(count, "case"))});
    return section;
}

Section broken_expectations(const Record& record) {
    Section section{"Expectations that did not come true: correct the expectations file", {}};
    for (const std::string& broken : record.broken_expectations)
        section.items.push_back({"", printable(broken)});
    return section;
}

}  // namespace

std::vector<Section> remarks_on(const Record& record) {
    std::vector<Section> sections{
        errors(record, Verdict::harness_error, "Faults of the harness"),
        errors(record, Verdict::environment, "The subject could not run here"),
        without_end(record),
        never_exercised(record),
        deviations(record),
        not_observable(record),
        outside(record),
        expected_failures(record),
        broken_expectations(record)};
    std::erase_if(sections, [](const Section& section) { return section.items.empty(); });
    return sections;
}

}  // namespace zeroproof::harness
