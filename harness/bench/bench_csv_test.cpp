#include "harness/bench/bench_csv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "harness/bench/sample_record.h"

namespace zeroproof::harness {
namespace {

// Of RFC 4180.
std::vector<std::vector<std::string>> rows_of(const std::string& csv) {
    std::vector<std::vector<std::string>> rows;
    std::istringstream lines(csv);
    for (std::string line; std::getline(lines, line);) {
        EXPECT_EQ(line.back(), '\r');
        line.pop_back();
        std::vector<std::string> row(1);
        bool quoted = false;
        for (std::size_t i = 0; i < line.size(); ++i) {
            const bool doubled = quoted && line.substr(i, 2) == "\"\"";
            if (line[i] == ',' && !quoted) {
                row.emplace_back();
            } else if (line[i] != '"' || doubled) {
                row.back() += line[i];
                i += doubled;
            } else {
                quoted = !quoted;
            }
        }
        rows.push_back(row);
    }
    return rows;
}

std::string cell(const std::vector<std::vector<std::string>>& rows, std::size_t row,
                 const std::string& column) {
    const auto& header = rows.at(0);
    const auto at = std::ranges::find(header, column);
    EXPECT_NE(at, header.end()) << column;
    return rows.at(row).at(static_cast<std::size_t>(at - header.begin()));
}

TEST(BenchCsv, HasARowForEachResultWithTheColumnsOfTheHeader) {
    const BenchRecord record = sample_record("2x2");
    const auto rows = rows_of(to_bench_csv(record));
    ASSERT_EQ(rows.size(), 1 + record.operations.size() + record.stages.size());
    for (const auto& row : rows) EXPECT_EQ(row.size(), rows[0].size());

    EXPECT_EQ(cell(rows, 1, "kind"), "operation");
    EXPECT_EQ(cell(rows, 1, "shape"), "2x2");
    EXPECT_EQ(cell(rows, 1, "op"), "all_reduce");
    EXPECT_EQ(cell(rows, 1, "repeats"), "7");
    EXPECT_EQ(cell(rows, 1, "bus_factor"), "1.5");
    EXPECT_EQ(cell(rows, 1, "predicted_seconds"), "") << "native is not predicted";
    EXPECT_EQ(cell(rows, 1, "sent_inter_node_elements"), "");
    EXPECT_EQ(cell(rows, 1, "stage"), "");
    EXPECT_EQ(std::stod(cell(rows, 1, "median_seconds")),
              record.operations[0].timing.median_seconds());
    EXPECT_EQ(cell(rows, 8, "used_for_fit"), "true");

    const std::size_t stage = rows.size() - 1;
    EXPECT_EQ(cell(rows, stage, "kind"), "stage");
    EXPECT_EQ(cell(rows, stage, "op"), "");
    EXPECT_EQ(cell(rows, stage, "bytes"), "");
    EXPECT_EQ(cell(rows, stage, "stage"), "3");
    EXPECT_EQ(cell(rows, stage, "overlap"), "true");
    EXPECT_EQ(cell(rows, stage, "formula"), "3 Phi");
    EXPECT_EQ(cell(rows, stage, "nominal_elements"), "12000000");
}

TEST(BenchCsv, ForeignTextStaysInItsCell) {
    BenchRecord record = sample_record("1x4");
    record.topology.name = "a, \"b\"\nc";
    const auto rows = rows_of(to_bench_csv(record));
    ASSERT_EQ(rows.size(), 1 + record.operations.size() + record.stages.size());
    EXPECT_EQ(cell(rows, 1, "topology"), "a, \"b\"\\nc");
}

}  // namespace
}  // namespace zeroproof::harness
