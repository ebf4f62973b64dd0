#include <fmt/format.h>

#include <algorithm>

#include "harness/writers/summary.h"
#include "harness/writers/text.h"
#include "harness/writers/writer.h"

namespace zeroproof::harness {

namespace {

constexpr std::size_t kColumns = 100;
constexpr std::size_t kMostMeasurementRows = 16;

enum class Colour { green, red, yellow, faint, bold };

class Page {
  public:
    explicit Page(bool colour) : colour_(colour) {}

    std::string painted(std::string_view text, Colour colour) const {
        if (!colour_) return std::string(text);
        constexpr std::string_view codes[] = {"32", "1;31", "33", "2", "1"};
        return fmt::format("\x1b[{}m{}\x1b[0m", codes[static_cast<std::size_t>(colour)], text);
    }
    void line(std::string_view text) {
        text_ += text;
        text_ += '\n';
    }
    void paragraph(std::string_view text, std::string_view first = "",
                   std::string_view others = "") {
        std::string_view indent = first;
        for (const std::string& line_text : wrapped(text, kColumns - columns_of(first))) {
            line(std::string(indent) + line_text);
            indent = others;
        }
    }
    void heading(std::string_view text, Colour colour = Colour::bold) {
        line("");
        line(painted(text, colour));
    }
    std::string text() const { return text_; }

  private:
    bool colour_;
    std::string text_;
};

Colour colour_of(Cell cell) {
    switch (cell) {
        case Cell::pass: return Colour::green;
        case Cell::fail:
        case Cell::error: return Colour::red;
        case Cell::deviates:
        case Cell::expected_failure: return Colour::yellow;
        case Cell::nothing_asked:
        case Cell::not_declared:
        case Cell::not_exercised: break;
    }
    return Colour::faint;
}

void write_matrix(Page& page, const Matrix& matrix) {
    if (matrix.empty()) return;
    page.heading("Clauses by family, stage, precision and micro-steps of a window");
    for (const std::string& line : matrix_lines(
             matrix, [&](Cell cell) { return page.painted(symbol_of(cell), colour_of(cell)); }))
        page.line(line);
    page.paragraph(legend_of(matrix));
}

// The columns of the table; a mark tells whether what was measured is the exact figure.
std::vector<std::string> cells_of(const MeasurementRow& row, const MeasurementTable& table) {
    const auto mark = [](bool equal) { return equal ? "✓" : "✗"; };
    std::vector<std::string> cells{fmt::to_string(row.stage), row.bytes_formula, row.bytes_nominal,
                                   row.bytes_exact, row.bytes_seen};
    if (table.bytes_differ) cells.emplace_back(mark(row.bytes_equal));
    for (const std::string* cell :
         {&row.elements_formula, &row.elements_nominal, &row.elements_exact, &row.elements_seen})
        cells.push_back(*cell);
    if (table.elements_differ) cells.emplace_back(mark(row.elements_equal));
    cells.push_back(row.elements_sent);
    return cells;
}

void write_measurements(Page& page, const MeasurementTable& table) {
    if (table.groups.empty()) return;
    page.heading("Bytes of model states and elements per step, of rank 0, beside the formulas");
    for (const std::string& sentence : table.sentences) page.paragraph(sentence);
    page.paragraph(
        "Φ: trainable parameters, N: ranks, GA: micro-steps of a window. Exact: with padding. "
        "Sent: measured times (N - 1) / N.");
    std::vector<std::string> header{"stage", "bytes", "nominal", "exact", "measured"};
    if (table.bytes_differ) header.emplace_back("=");
    for (const char* name : {"elements", "nominal", "exact", "measured"}) header.emplace_back(name);
    if (table.elements_differ) header.emplace_back("=");
    header.emplace_back("sent");
    std::vector<std::size_t> widths;
    for (const std::string& name : header) widths.push_back(columns_of(name));
    for (const MeasurementGroup& group : table.groups)
        for (const MeasurementRow& row : group.rows) {
            const auto cells = cells_of(row, table);
            for (std::size_t i = 0; i < cells.size(); ++i)
                widths[i] = std::max(widths[i], columns_of(cells[i]));
        }
    std::size_t least = 0;
    for (const std::size_t width : widths) least += width + 1;
    const std::string gap(least - 1 + widths.size() - 1 <= kColumns ? 2 : 1, ' ');
    const auto laid_out = [&](const std::vector<std::string>& cells) {
        std::string line;
        for (std::size_t i = 0; i < cells.size(); ++i)
            line += (i == 0 ? "" : gap) + right_aligned(cells[i], widths[i]);
        return line;
    };
    page.line(laid_out(header));
    for (const MeasurementGroup& group : table.groups) {
        page.line(page.painted(fmt::format("{}, N = {}, GA = {}, Φ = {}", group.precision,
                                           group.ranks, group.micro_steps, group.phi),
                               Colour::faint));
        for (const MeasurementRow& row : group.rows) {
            const std::string line = laid_out(cells_of(row, table));
            page.line(row.bytes_equal && row.elements_equal ? line
                                                            : page.painted(line, Colour::red));
        }
    }
    if (table.groups_left_out > 0)
        page.line(
            fmt::format("and {}, in the record", counted(table.groups_left_out, "more group")));
}

void write_failures(Page& page, const std::vector<FailureBlock>& failures) {
    for (const FailureBlock& block : failures) {
        page.heading(fmt::format("FAIL {}", block.clause->name), Colour::red);
        for (const std::string& line : lines_of(block)) page.line("  " + line);
    }
}

}  // namespace

std::string to_terminal(const Record& record, bool colour) {
    const Summary summary = summarise(record, kMostMeasurementRows);
    Page page(colour);
    for (const std::string& sentence : summary.headline) page.paragraph(sentence);
    write_matrix(page, summary.matrix);
    write_measurements(page, summary.measurements);
    write_failures(page, summary.failures);
    for (const Section& section : summary.sections) {
        page.heading(section.title);
        for (const Item& item : section.items)
            page.paragraph(item.name.empty() ? item.text : item.name + ": " + item.text, "  ",
                           "    ");
    }
    constexpr Colour colours[] = {Colour::green, Colour::red, Colour::yellow};
    page.heading(summary.conclusion, colours[static_cast<std::size_t>(summary.outcome)]);
    return page.text();
}

}  // namespace zeroproof::harness
