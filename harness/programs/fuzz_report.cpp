#include "harness/programs/fuzz_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/programs/words.h"
#include "harness/writers/failure_block.h"
#include "harness/writers/text.h"
#include "harness/writers/writer.h"
#include "scenarios/json_reader.h"
#include "suites/conformance/case_writer.h"

namespace zeroproof::harness {

namespace {

using scenarios::Json;

constexpr std::size_t kColumns = 98;
constexpr std::size_t kLabelColumns = 10;
constexpr std::string_view kIndent = "   ";
// Of a failure's block, which is made for `verify`; the rest is told otherwise here.
constexpr std::string_view kFieldsOfFailure[] = {"compared", "expected",   "seen",
                                                 "where",    "digits say", "the run"};

std::vector<std::string_view> others_of(const Finding& finding) {
    std::vector<std::string_view> others;
    for (const ClauseResult& one : finding.result.clauses)
        if (one.clause != finding.clause && one.judgement.verdict == Verdict::fail)
            others.push_back(one.clause->name);
    return others;
}

std::string subject_argument(const FuzzReport& report) {
    return report.subject.empty() ? "" : " " + shell_quoted(printable(report.subject));
}

std::string rerun_command(const FuzzReport& report, std::size_t index) {
    const FindingGroup& group = report.record.groups[index];
    if (index < report.files.size() && group.example.failure() != nullptr)
        return fmt::format("zeroproof verify{} --cases {} --clause {}{}", subject_argument(report),
                           shell_quoted(report.files[index]), group.example.clause->name,
                           report.verify_options);
    return fmt::format("zeroproof fuzz{} --seed {} --only {}{}", subject_argument(report),
                       report.seed, group.example.program, report.rerun_options);
}

class GroupText {
  public:
    GroupText(const FuzzReport& report, std::size_t index)
        : report_(report), index_(index), group_(report.record.groups[index]) {}

    std::string text() {
        const Finding& finding = group_.example;
        text_ = fmt::format("{}. {}: {}, the first after {:.1f} s (program {})\n", index_ + 1,
                            finding.clause->name, counted(group_.programs, "program"),
                            group_.found_after, group_.first_program);
        for (const std::string& line : wrapped(finding.clause->sentence, kColumns))
            text_ += fmt::format("{}{}\n", kIndent, line);
        field("set-up", printable(set_up_in_words(*finding.smallest)));
        field("program", printable(program_in_words(*finding.smallest)));
        if (const ClauseResult* failure = finding.failure())
            for (const Field& one : failure_block({}, finding.result, *failure, {}).fields)
                if (std::ranges::count(kFieldsOfFailure, one.label) > 0)
                    field(one.label, one.value);
        if (finding.failure() == nullptr)
            field("but", "it held when the same program was run again: a matter of timing?");
        else if (!finding.is_minimal)
            field("but", "there was no time to make it as small as it can be");
        if (group_.stages.size() > 1)
            field("stages", fmt::format("{}", fmt::join(group_.stages, ", ")));
        if (const auto others = others_of(finding); !others.empty())
            field("fails too", fmt::format("{}", fmt::join(others, ", ")));
        text_ += fmt::format("{}{}{}\n\n", kIndent, left_aligned("run again", kLabelColumns),
                             rerun_command(report_, index_));
        return std::move(text_);
    }

  private:
    void field(std::string_view name, const std::string& value) {
        std::string label = left_aligned(name, std::max(kLabelColumns, name.size() + 1));
        for (const std::string& line : wrapped(value, kColumns - kLabelColumns)) {
            text_ += fmt::format("{}{}{}\n", kIndent, label, line);
            label.assign(kLabelColumns, ' ');
        }
    }

    const FuzzReport& report_;
    std::size_t index_;
    const FindingGroup& group_;
    std::string text_;
};

double per_second(const FuzzRecord& record) {
    return record.running_seconds > 0
               ? static_cast<double>(record.programs) / record.running_seconds
               : 0;
}

Json group_to_json(const FuzzReport& report, std::size_t index) {
    const FindingGroup& group = report.record.groups[index];
    const Finding& finding = group.example;
    Json json{{"clause", finding.clause->name},
              {"sentence", finding.clause->sentence},
              {"cause", group.cause},
              {"programs", group.programs},
              {"stages", group.stages},
              {"first_program", group.first_program},
              {"found_after_seconds", group.found_after},
              {"fails_again", finding.failure() != nullptr},
              {"minimal", finding.is_minimal},
              {"features", features_of(*finding.smallest)},
              {"set_up", set_up_in_words(*finding.smallest)},
              {"program", program_in_words(*finding.smallest)}};
    if (const ClauseResult* failure = finding.failure()) {
        json["quantity"] = failure->judgement.first.quantity;
        json["expected"] = failure->judgement.first.expected;
        json["seen"] = failure->judgement.first.seen;
    }
    json["fails_too"] = others_of(finding);
    json["run_again"] = rerun_command(report, index);
    json["case"] = suites::case_to_json(*finding.smallest);
    if (index < report.files.size()) json["file"] = report.files[index];
    return json;
}

template <typename Map>
Json counts_to_json(const Map& counts) {
    Json json = Json::object();
    for (const auto& [name, count] : counts) json[std::string(name)] = count;
    return json;
}

}  // namespace

std::string to_terminal(const FuzzReport& report) {
    const FuzzRecord& record = report.record;
    std::string text;
    for (std::size_t i = 0; i < record.groups.size(); ++i) text += GroupText(report, i).text();
    for (const auto& [name, count] : record.not_shrunk)
        text += fmt::format("{} failed {} and {} not shrunk\n", counted(count, "more program"),
                            name, count == 1 ? "was" : "were");
    for (const std::string& error : record.harness_errors)
        text += fmt::format("a fault of the harness: {}\n", printable(error));
    if (record.not_run > 0)
        text += fmt::format("{} could not be run: {}\n", counted(record.not_run, "program"),
                            printable(record.not_run_because));
    if (record.interrupted) text += "interrupted: there was no time for the rest\n";
    if (record.rejected > 0)
        text += fmt::format("{} refused\n", counted(record.rejected, "program"));
    text += fmt::format("{} in {:.1f} s, {:.0f} a second; {} failed, {}\n",
                        counted(record.programs, "program"), record.seconds, per_second(record),
                        record.failing, counted(record.groups.size(), "group"));
    return text;
}

std::string to_json(const FuzzReport& report) {
    const FuzzRecord& record = report.record;
    Json groups = Json::array();
    for (std::size_t i = 0; i < record.groups.size(); ++i)
        groups.push_back(group_to_json(report, i));
    Json document{{"schema", "zeroproof.fuzz/1"},
                  {"subject", report.subject},
                  {"command", report.command},
                  {"seed", report.seed},
                  {"programs", record.programs},
                  {"seconds", record.seconds},
                  {"running_seconds", record.running_seconds},
                  {"programs_per_second", per_second(record)},
                  {"failing", record.failing},
                  {"rejected", record.rejected},
                  {"not_run", record.not_run},
                  {"interrupted", record.interrupted},
                  {"first_failure_after_seconds", nullptr},
                  {"groups", std::move(groups)},
                  {"not_shrunk", counts_to_json(record.not_shrunk)},
                  {"judged", counts_to_json(record.judged)},
                  {"harness_errors", record.harness_errors}};
    if (record.first_failure_after)
        document["first_failure_after_seconds"] = *record.first_failure_after;
    if (record.not_run > 0) document["not_run_because"] = record.not_run_because;
    return document.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::vector<std::string> save_groups(const FuzzRecord& record,
                                     const std::filesystem::path& folder) {
    std::vector<std::string> files;
    for (const FindingGroup& group : record.groups) {
        const auto file =
            folder / fmt::format("{:02}-{}.json", files.size() + 1, group.example.clause->name);
        Json family = suites::case_to_json(*group.example.smallest);
        family["purpose"] = fmt::format("Found by fuzzing: fails {}.", group.example.clause->name);
        write_whole(file, family.dump(2, ' ', false, Json::error_handler_t::replace) + '\n');
        files.push_back(file.string());
    }
    return files;
}

}  // namespace zeroproof::harness
