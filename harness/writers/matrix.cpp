#include "harness/writers/matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/writers/text.h"

namespace zeroproof::harness {

namespace {

constexpr std::size_t kFamilyColumns = 14;

std::size_t column_of(const Case& c) {
    if (c.transport || c.stage < 0 || c.stage >= static_cast<int>(kMatrixStages))
        return kMatrixColumns - 1;
    const auto stage = static_cast<std::size_t>(c.stage);
    const auto precision = static_cast<std::size_t>(c.precision);
    return (stage * kMatrixPrecisions + precision) * 2 + (c.micro_steps > 1 ? 1 : 0);
}

Cell cell_of(const ClauseResult& result) {
    switch (result.judgement.verdict) {
        case Verdict::pass: return Cell::pass;
        case Verdict::deviates: return Cell::deviates;
        case Verdict::fail:
            return result.expected_because.empty() ? Cell::fail : Cell::expected_failure;
        case Verdict::rejected:
        case Verdict::not_declared: return Cell::not_declared;
        case Verdict::not_exercised:
        case Verdict::not_observable: return Cell::not_exercised;
        case Verdict::environment:
        case Verdict::harness_error: break;
    }
    return Cell::error;
}

std::string_view meaning_of(Cell cell) {
    switch (cell) {
        case Cell::nothing_asked: return "nothing asked";
        case Cell::not_declared: return "rejected or not declared";
        case Cell::not_exercised: return "not exercised or not observable";
        case Cell::pass: return "pass";
        case Cell::deviates: return "deviates from the paper as declared";
        case Cell::expected_failure: return "expected failure";
        case Cell::error: return "error of the environment or the harness";
        case Cell::fail: return "FAIL";
    }
    return "";
}

}  // namespace

Matrix matrix_of(const Record& record) {
    std::map<std::string_view, MatrixRow> rows;
    for (const CaseResult& result : record.cases)
        for (const ClauseResult& clause : result.clauses) {
            const std::string_view family = suites::family_of(*clause.clause);
            MatrixRow& row = rows[family];
            row.family = family;
            Cell& cell = row.cells[column_of(*result.c)];
            cell = std::max(cell, cell_of(clause));
        }
    Matrix matrix;
    for (const auto& [family, row] : rows) matrix.push_back(row);
    return matrix;
}

std::string_view symbol_of(Cell cell) {
    constexpr std::string_view symbols[] = {"·", "-", "○", "✓", "≈", "x", "!", "✗"};
    return symbols[static_cast<std::size_t>(cell)];
}

std::vector<std::string> matrix_lines(const Matrix& matrix,
                                      const std::function<std::string(Cell)>& paint) {
    std::string stages(kFamilyColumns, ' ');
    std::string precisions(kFamilyColumns, ' ');
    std::string micro_steps = left_aligned("micro-steps", kFamilyColumns);
    for (std::size_t stage = 0; stage < kMatrixStages; ++stage) {
        stages += left_aligned(fmt::format("stage {}", stage), 17);
        precisions += "fp32 bf16 fp16   ";
        micro_steps += " 1+   1+   1+    ";
    }
    std::vector<std::string> lines{stages.substr(0, stages.find_last_not_of(' ') + 1),
                                   precisions.substr(0, precisions.find_last_not_of(' ') + 1),
                                   micro_steps + "other"};
    for (const MatrixRow& row : matrix) {
        std::string line = left_aligned(row.family, kFamilyColumns);
        for (std::size_t column = 0; column + 1 < kMatrixColumns; column += 2) {
            line += " " + paint(row.cells[column]) + paint(row.cells[column + 1]) + " ";
            line += column % (2 * kMatrixPrecisions) == 2 * kMatrixPrecisions - 2 ? "   " : " ";
        }
        lines.push_back(line + "  " + paint(row.cells.back()));
    }
    return lines;
}

std::string legend_of(const Matrix& matrix) {
    std::vector<std::string> entries;
    for (const Cell cell : {Cell::pass, Cell::fail, Cell::expected_failure, Cell::error,
                            Cell::not_exercised, Cell::not_declared, Cell::nothing_asked}) {
        const bool occurs = std::ranges::any_of(
            matrix, [&](const MatrixRow& row) { return std::ranges::count(row.cells, cell) > 0; });
        if (occurs) entries.push_back(fmt::format("{} {}", symbol_of(cell), meaning_of(cell)));
    }
    return fmt::format(
        "{}. A cell shows the gravest of its verdicts: a pass is where something passed and "
        "nothing "
        "failed. 1: windows of one micro-step, +: of several. \"other\": the transport, and what "
        "has no stage from 0 to 3.",
        fmt::join(entries, ", "));
}

}  // namespace zeroproof::harness
