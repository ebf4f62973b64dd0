#include "harness/bench/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <sstream>

#include "harness/bench/sample_record.h"
#include "harness/writers/text.h"

namespace zeroproof::harness {
namespace {

constexpr double kLevel = 0.01;

// A record of `series` results with `repeats` times each, whose noise a lognormal distribution
// makes, as long tails do.
class Simulation {
  public:
    explicit Simulation(unsigned seed) : random_(seed) {}

    BenchRecord record(std::size_t series, std::size_t repeats) {
        BenchRecord record;
        record.topology.ranks_per_node = 4;
        for (std::size_t i = 0; i < series; ++i) {
            OperationResult result;
            result.op = "all_reduce";
            result.algorithm = "ring";
            result.type = "fp32";
            result.ranks = 4;
            result.bytes = std::uint64_t{1024} << i;
            std::lognormal_distribution<double> noise(-7.0 + 0.3 * static_cast<double>(i), 0.03);
            for (std::size_t repeat = 0; repeat < repeats; ++repeat)
                result.timing.seconds.push_back(noise(random_));
            record.operations.push_back(result);
        }
        return record;
    }

  private:
    std::mt19937 random_;
};

void stretch(Timing& timing, double factor) {
    for (double& seconds : timing.seconds) seconds *= factor;
}

TEST(Compare, WithoutAChangeAlarmsAreAsRareAsTheLevelSays) {
    Simulation simulation(1);
    int alarms = 0;
    constexpr int kTrials = 1000;
    for (int trial = 0; trial < kTrials; ++trial) {
        const BenchRecord older = simulation.record(12, 10);
        const BenchRecord newer = simulation.record(12, 10);
        alarms += compare(older, newer, 0.05).count(Change::slower) > 0;
    }
    // 0.05 and three standard deviations more.
    EXPECT_LT(alarms, kTrials * 0.071);
}

TEST(Compare, ATenthMoreIsFoundAndOnlyWhereItIs) {
    Simulation simulation(2);
    int found = 0;
    constexpr int kTrials = 100;
    for (int trial = 0; trial < kTrials; ++trial) {
        const BenchRecord older = simulation.record(12, 10);
        BenchRecord newer = simulation.record(12, 10);
        stretch(newer.operations[5].timing, 1.1);
        stretch(newer.operations[7].timing, 0.9);
        const ComparedRecords compared = compare(older, newer, kLevel);
        found += compared.compared.front().change == Change::slower &&
                 compared.compared.front().identity.find("32 KiB") != std::string::npos &&
                 compared.compared.back().change == Change::faster;
    }
    EXPECT_GT(found, kTrials * 0.9);
}

TEST(Compare, TellsHowMuchAndSortsByTheRatio) {
    Simulation simulation(3);
    const BenchRecord older = simulation.record(3, 10);
    BenchRecord newer = older;
    stretch(newer.operations[0].timing, 0.5);
    stretch(newer.operations[2].timing, 2);
    const ComparedRecords compared = compare(older, newer, kLevel);
    ASSERT_EQ(compared.compared.size(), 3u);
    EXPECT_EQ(compared.compared[0].change, Change::slower);
    EXPECT_DOUBLE_EQ(compared.compared[0].ratio(), 2);
    EXPECT_GT(compared.compared[0].shift_seconds, 0);
    EXPECT_LT(compared.compared[0].p_slower, kLevel);
    EXPECT_EQ(compared.compared[1].change, Change::no_difference);
    EXPECT_EQ(compared.compared[1].shift_seconds, 0);
    EXPECT_EQ(compared.compared[2].change, Change::faster);
    EXPECT_LT(compared.compared[2].shift_seconds, 0);
    EXPECT_EQ(exit_code(compared), 1);
    EXPECT_EQ(exit_code(compare(older, older, kLevel)), 0);
}

TEST(Compare, SaysThatRepeatsAreTooFewAndHowManyWouldDo) {
    Simulation simulation(4);
    const BenchRecord older = simulation.record(4, 3);
    BenchRecord newer = older;
    for (OperationResult& result : newer.operations) stretch(result.timing, 3);
    // 4 comparisons, and 1 / C(6, 3) = 0.05 each.
    const ComparedRecords compared = compare(older, newer, kLevel);
    EXPECT_EQ(compared.count(Change::too_few_repeats), 4u);
    EXPECT_EQ(exit_code(compared), 3);
    // 4 / C(10, 5) = 0.016 and 4 / C(12, 6) = 0.004.
    EXPECT_EQ(compared.repeats_needed, 6u);
    EXPECT_NE(to_terminal(compared).find("with 6 in each record"), std::string::npos)
        << to_terminal(compared);

    BenchRecord before = simulation.record(4, 6);
    BenchRecord after = before;
    stretch(after.operations[1].timing, 3);
    EXPECT_EQ(compare(before, after, kLevel).count(Change::slower), 1u);
    EXPECT_EQ(compare(before, after, kLevel).count(Change::no_difference), 3u);
}

TEST(Compare, PairsWhatMeasuredTheSame) {
    const BenchRecord sample = sample_record("2x2");
    const ComparedRecords same = compare(sample, sample, kLevel);
    EXPECT_EQ(same.compared.size(), sample.operations.size() + sample.stages.size());
    EXPECT_TRUE(same.only_in_old.empty());

    BenchRecord other = sample;
    other.operations[0].bytes += 4;
    other.stages[0].overlap = false;
    other.stages.pop_back();
    const ComparedRecords compared = compare(sample, other, kLevel);
    EXPECT_EQ(compared.only_in_old.size(), 3u);
    EXPECT_EQ(compared.only_in_new.size(), 2u);
    EXPECT_NE(compared.only_in_new[0].find("4100 B"), std::string::npos);

    other.operations.clear();
    other.stages.clear();
    EXPECT_EQ(exit_code(compare(sample, other, kLevel)), 3);
}

TEST(Compare, SeesAnotherMachine) {
    const BenchRecord sample = sample_record("2x2");
    EXPECT_TRUE(differences_of_machine(sample, sample).empty());
    BenchRecord other = sample;
    other.host = "another name says nothing";
    EXPECT_TRUE(differences_of_machine(sample, other).empty());
    other.backend = "threads";
    other.topology.links[1].latency_s = 1e-6;
    other.processors += 1;
    EXPECT_EQ(differences_of_machine(sample, other).size(), 3u);
    EXPECT_FALSE(differences_of_machine(sample, sample_record("1x4")).empty());
}

TEST(Compare, TheTableIsNarrowAndPrintable) {
    BenchRecord older = sample_record("2x2");
    BenchRecord newer = older;
    stretch(newer.stages[0].timing, 2);
    newer.operations[0].algorithm = "\x1b[31m";
    newer.stages.pop_back();
    const std::string text = to_terminal(compare(older, newer, kLevel));
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), 100u) << line;
    EXPECT_NE(text.find("Only in NEW"), std::string::npos) << text;
}

}  // namespace
}  // namespace zeroproof::harness
