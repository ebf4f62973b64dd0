#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "harness/writers/summary.h"
#include "harness/writers/text.h"
#include "harness/writers/writer.h"

namespace zeroproof::harness {

namespace {

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (std::string_view("\\`*_<>[]|&~#@").find(c) != std::string_view::npos) out += '\\';
        out += c;
    }
    return out;
}

// A block that shows its lines as they are, with a fence longer than any run of backticks in them.
std::string fenced(const std::vector<std::string>& lines) {
    std::size_t longest = 2;
    for (const std::string& line : lines) {
        std::size_t run = 0;
        for (const char c : line) {
            run = c == '`' ? run + 1 : 0;
            longest = std::max(longest, run);
        }
    }
    const std::string fence(longest + 1, '`');
    return fmt::format("{}text\n{}\n{}\n", fence, fmt::join(lines, "\n"), fence);
}

std::string measurements_of(const MeasurementTable& table) {
    if (table.groups.empty()) return "";
    std::string out =
        "\n## Bytes of model states and elements per step, of rank 0, beside the formulas\n\n";
    for (const std::string& sentence : table.sentences) out += sentence + "\n";
    out +=
        "Φ: trainable parameters, N: ranks, GA: micro-steps of a window. Exact: with padding. "
        "Sent: measured times (N - 1) / N.\n\n";
    std::vector<std::string_view> header{"precision", "N",       "GA",    "Φ",       "stage",
                                         "bytes",     "nominal", "exact", "measured"};
    if (table.bytes_differ) header.emplace_back("equal");
    for (const char* name : {"elements", "nominal", "exact", "measured"}) header.emplace_back(name);
    if (table.elements_differ) header.emplace_back("equal");
    header.emplace_back("sent");
    out += fmt::format("| {} |\n|", fmt::join(header, " | "));
    for (std::size_t i = 0; i < header.size(); ++i) out += i == 0 ? "---|" : "--:|";
    out += "\n";
    const auto mark = [](bool differs, bool equal) {
        return !differs ? "" : equal ? " yes |" : " **NO** |";
    };
    for (const MeasurementGroup& group : table.groups)
        for (const MeasurementRow& row : group.rows)
            out += fmt::format(
                "| {} | {} | {} | {} | {} | {} | {} | {} | {} |{} {} | {} | {} | {} |{} {} |\n",
                group.precision, group.ranks, group.micro_steps, group.phi, row.stage,
                row.bytes_formula, row.bytes_nominal, row.bytes_exact, row.bytes_seen,
                mark(table.bytes_differ, row.bytes_equal), row.elements_formula,
                row.elements_nominal, row.elements_exact, row.elements_seen,
                mark(table.elements_differ, row.elements_equal), row.elements_sent);
    return out;
}

}  // namespace

std::string to_markdown(const Record& record) {
    const Summary summary = summarise(record, std::numeric_limits<std::size_t>::max());
    std::string out = fmt::format("# zeroproof verify: {}\n\n**{}**\n\n",
                                  escaped(printable(record.subject)), escaped(summary.conclusion));
    for (const std::string& sentence : summary.headline) out += "- " + escaped(sentence) + "\n";
    if (!summary.matrix.empty()) {
        out += "\n## Clauses by family, stage, precision and micro-steps of a window\n\n";
        out += fenced(
            matrix_lines(summary.matrix, [](Cell cell) { return std::string(symbol_of(cell)); }));
        out += "\n" + legend_of(summary.matrix) + "\n";
    }
    out += measurements_of(summary.measurements);
    if (!summary.failures.empty()) out += "\n## Failures\n";
    for (const FailureBlock& block : summary.failures)
        out += fmt::format("\n### {}\n\n{}", block.clause->name, fenced(lines_of(block)));
    for (const Section& section : summary.sections) {
        out += fmt::format("\n## {}\n\n", section.title);
        for (const Item& item : section.items)
            out += item.name.empty()
                       ? fmt::format("- {}\n", escaped(item.text))
                       : fmt::format("- **{}**: {}\n", escaped(item.name), escaped(item.text));
    }
    return out + fmt::format("\n**{}**\n", escaped(summary.conclusion));
}

}  // namespace zeroproof::harness
