// Families of clauses against the places where ZeRO differs: stage, precision and accumulation.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/record.h"

namespace zeroproof::harness {

// The later of two says more: a cell shows the latest of its verdicts.
enum class Cell {
    nothing_asked,
    not_declared,   // or rejected as it should be
    not_exercised,  // or not observable
    pass,
    deviates,  // as declared
    expected_failure,
    error,  // of the environment or the harness
    fail
};

inline constexpr std::size_t kMatrixStages = 4;
inline constexpr std::size_t kMatrixPrecisions = 3;
// Each stage, precision, and one micro-step or several; the last for what has no such stage.
inline constexpr std::size_t kMatrixColumns = kMatrixStages * kMatrixPrecisions * 2 + 1;

struct MatrixRow {
    std::string_view family;
    std::array<Cell, kMatrixColumns> cells{};
};
using Matrix = std::vector<MatrixRow>;

Matrix matrix_of(const Record& record);

std::string_view symbol_of(Cell cell);
// A header and the rows, within 100 columns. `paint` gives the symbol, which is one column wide.
std::vector<std::string> matrix_lines(const Matrix& matrix,
                                      const std::function<std::string(Cell)>& paint);
// Of the symbols that occur.
std::string legend_of(const Matrix& matrix);

}  // namespace zeroproof::harness
