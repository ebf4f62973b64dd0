#include "harness/bench/bench_terminal.h"

#include <gtest/gtest.h>

#include <sstream>

#include "harness/bench/sample_record.h"
#include "harness/writers/text.h"

namespace zeroproof::harness {
namespace {

void expect_narrow(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), 100u) << line;
}
std::string line_with(const std::string& text, const std::string& part) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        if (line.find(part) != std::string::npos) return line;
    ADD_FAILURE() << "no \"" << part << "\" in\n" << text;
    return "";
}

TEST(BenchTerminal, ShowsThreeDigitsInTheUnitThatFits) {
    EXPECT_EQ(shown_seconds(0), "0.00 s");
    EXPECT_EQ(shown_seconds(1.5e-9), "1.50 ns");
    EXPECT_EQ(shown_seconds(12.34e-6), "12.3 us");
    EXPECT_EQ(shown_seconds(999.6e-6), "1.00 ms");
    EXPECT_EQ(shown_seconds(0.9996), "1.00 s");
    EXPECT_EQ(shown_seconds(1234.5), "1234 s");
    EXPECT_EQ(shown_rate(1.25e9), "1.25 GB/s");
    EXPECT_EQ(shown_rate(42), "42.0 B/s");
}

TEST(BenchTerminal, ShowsSizesExactly) {
    EXPECT_EQ(shown_bytes(1), "1 B");
    EXPECT_EQ(shown_bytes(1000), "1000 B");
    EXPECT_EQ(shown_bytes(1024), "1 KiB");
    EXPECT_EQ(shown_bytes(1536), "1.5 KiB");
    EXPECT_EQ(shown_bytes(1025), "1025 B");
    EXPECT_EQ(shown_bytes((1 << 20) + 1024), "1025 KiB");
    EXPECT_EQ(shown_bytes(std::uint64_t{3} << 40), "3 TiB");
}

TEST(BenchTerminal, TablesSayWhatWasMeasuredIn100Columns) {
    for (const char* shape : {"1x4", "2x2", "4x2"}) {
        const std::string text = to_bench_terminal(sample_record(shape));
        expect_narrow(text);
        EXPECT_NE(text.find("2 (N - 1) / N"), std::string::npos) << text;
        EXPECT_NE(text.find("= 3 Phi"), std::string::npos) << text;
    }
    const std::string text = to_bench_terminal(sample_record("2x2"));
    EXPECT_NE(line_with(text, "2 (N - 1) / N").find("N = 4: 1.5"), std::string::npos) << text;
    EXPECT_EQ(line_with(text, "all_gather fp32").find("2 (N"), std::string::npos) << text;
    const std::string largest = line_with(text, "16 MiB");
    EXPECT_NE(largest.find("384 MB/s"), std::string::npos) << largest;
}

TEST(BenchTerminal, WhatIsNotAsTheFormulaSaysIsShown) {
    BenchRecord record = sample_record("2x2");
    record.stages[0].volumes[0].nominal_elements += 5;
    record.stages[0].nominal_elements += 5;
    const std::string text = to_bench_terminal(record);
    EXPECT_NE(text.find("! 2 Phi"), std::string::npos) << text;
    EXPECT_NE(text.find("8000005 elements, formula 8000000"), std::string::npos) << text;
}

TEST(BenchTerminal, LeavesOutWhatIsNotKnown) {
    BenchRecord record = sample_record("1x4");
    for (OperationResult& result : record.operations) {
        result.prediction.reset();
        result.bus_limit_bytes_per_s.reset();
    }
    record.stages.clear();
    const std::string text = to_bench_terminal(record);
    EXPECT_EQ(line_with(text, "lowest..highest").find("model"), std::string::npos) << text;
    EXPECT_EQ(line_with(text, "lowest..highest").find("limit"), std::string::npos) << text;
}

TEST(BenchTerminal, ForeignTextIsMadePrintableAndAnEarlyEndIsTold) {
    BenchRecord record = sample_record("1x4");
    record.host = "\x1b[31mhost";
    record.complete = false;
    record.ended_by = "rank 2 has \x07 died";
    record.operations.clear();
    record.stages.clear();
    const std::string text = to_bench_terminal(record);
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_NE(text.find("Not complete: rank 2 has \\x07 died"), std::string::npos) << text;
}

}  // namespace
}  // namespace zeroproof::harness
