#include "harness/writers/failure_block.h"

#include <fmt/format.h>

#include <map>

#include "harness/writers/text.h"

namespace zeroproof::harness {

namespace {

using suites::ActionKind;
using suites::Discrepancy;

constexpr std::size_t kColumns = 98;
constexpr std::size_t kLabelColumns = 12;

// Windows begin anew after a step, a discard and a load; evaluation stands outside of them.
std::size_t micro_step_of_window(const Case& c, std::size_t action) {
    std::size_t number = 0;
    for (std::size_t a = 0; a <= action; ++a) switch (c.program[a].kind) {
            case ActionKind::micro_step: ++number; break;
            case ActionKind::step:
            case ActionKind::zero_grad:
            case ActionKind::load:
            case ActionKind::reload: number = 0; break;
            default: break;
        }
    return number;
}

std::string action_of(const Case& c, int action) {
    if (action == -1) return "before the first action";
    const auto index = static_cast<std::size_t>(action);
    if (index >= c.program.size()) return fmt::format("action {}", action);
    const ActionKind kind = c.program[index].kind;
    std::string text = fmt::format("action {} (counted from 0: {}", action, suites::name_of(kind));
    if (kind == ActionKind::micro_step)
        text +=
            fmt::format(" {} of {} in its window", micro_step_of_window(c, index), c.micro_steps);
    return text + ")";
}

std::string place_of(const Case& c, const Discrepancy& d) {
    std::vector<std::string> parts;
    if (d.rank >= 0) parts.push_back(fmt::format("rank {}", d.rank));
    if (d.step >= 0) parts.push_back(fmt::format("step {}", d.step));
    if (d.action >= -1) parts.push_back(action_of(c, d.action));
    if (!d.parameter.empty()) parts.push_back(fmt::format("parameter {}", printable(d.parameter)));
    if (d.element >= 0) parts.push_back(fmt::format("element {}", d.element));
    if (d.owner >= 0) parts.push_back(fmt::format("owner rank {}", d.owner));
    return fmt::format("{}", fmt::join(parts, ", "));
}

struct Likeness {
    const CaseResult* first_case = nullptr;
    const ClauseResult* first = nullptr;
    std::size_t cases = 0;
    std::size_t places = 0;
};

std::string others_of(const Likeness& likeness) {
    const std::size_t here = likeness.first->judgement.more_like_it;
    const std::size_t other_cases = likeness.cases - 1;
    std::string text;
    if (here > 0) text = counted(here, "more place") + " in this case";
    if (other_cases > 0)
        text += fmt::format("{}{} with {}", text.empty() ? "" : "; ",
                            counted(other_cases, "other case"),
                            counted(likeness.places - here - 1, "place"));
    return text;
}

}  // namespace

bool is_unexpected_failure(const ClauseResult& result) {
    return result.judgement.verdict == Verdict::fail && result.expected_because.empty();
}

std::string rerun_command(const Record& record, const suites::Clause& clause, const Case& c) {
    const std::string subject = record.subject_argument.value_or(record.subject);
    return fmt::format("zeroproof verify{}{} --clause {} --filter {}{}", subject.empty() ? "" : " ",
                       subject.empty() ? "" : shell_quoted(printable(subject)), clause.name,
                       single_quoted(printable(c.id)), printable(record.rerun_options));
}

FailureBlock failure_block(const Record& record, const CaseResult& result,
                           const ClauseResult& clause, std::string others) {
    const Discrepancy& d = clause.judgement.first;
    const suites::Clause& promise = *clause.clause;
    FailureBlock block{&promise, {}};
    const auto add = [&](std::string_view label, std::string value, bool whole = false) {
        if (!value.empty()) block.fields.push_back({label, std::move(value), whole});
    };
    add("compared", printable_lines(d.quantity));
    add("expected", printable_lines(d.expected));
    add("seen", printable_lines(d.seen));
    add("where", place_of(*result.c, d));
    add("case", printable(result.c->id), true);
    add("digits say", printable_lines(d.diagnosis));
    if (result.status != suites::RunStatus::completed && result.message != d.seen)
        add("the run", printable_lines(result.message));
    add("like it", std::move(others));
    add("faults", std::string(promise.fault_classes));
    add("source", std::string(promise.source));
    add("run again", rerun_command(record, promise, *result.c), true);
    return block;
}

std::vector<FailureBlock> failure_blocks(const Record& record) {
    std::map<std::string_view, Likeness> by_clause;
    for (const CaseResult& result : record.cases)
        for (const ClauseResult& clause : result.clauses) {
            if (!is_unexpected_failure(clause)) continue;
            Likeness& likeness = by_clause[clause.clause->name];
            if (likeness.cases++ == 0) {
                likeness.first_case = &result;
                likeness.first = &clause;
            }
            likeness.places += 1 + clause.judgement.more_like_it;
        }
    std::vector<FailureBlock> blocks;
    for (const auto& [name, likeness] : by_clause)
        blocks.push_back(
            failure_block(record, *likeness.first_case, *likeness.first, others_of(likeness)));
    return blocks;
}

std::vector<std::string> lines_of(const FailureBlock& block) {
    std::vector<std::string> lines = wrapped(block.clause->sentence, kColumns);
    for (const Field& field : block.fields) {
        std::string label = left_aligned(field.label, kLabelColumns);
        const auto values = field.whole ? std::vector<std::string>{field.value}
                                        : wrapped(field.value, kColumns - kLabelColumns);
        for (const std::string& value : values) {
            lines.push_back(label + value);
            label.assign(kLabelColumns, ' ');
        }
    }
    return lines;
}

}  // namespace zeroproof::harness
