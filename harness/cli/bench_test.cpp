// `zeroproof bench` as a user runs it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "harness/bench/bench_json.h"
#include "harness/program_run.h"
#include "harness/temporary_folder.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {
namespace {

constexpr const char* kQuick =
    "--backend threads --repeat 2 --warmup 1 --min-time 0 --progress never";

class BenchCommandLine : public testing::Test {
  protected:
    static Ran bench(const std::string& arguments) {
        return run_program(ZEROPROOF_PROGRAM, fmt::format("bench {} {}", kQuick, arguments));
    }
    std::string file(const std::string& name) const { return (folder_.path() / name).string(); }
    // Ends with `code` and says `what`.
    static void expect(const Ran& ran, int code, const std::string& what) {
        EXPECT_EQ(ran.code, code) << ran.output;
        EXPECT_NE(ran.output.find(what), std::string::npos) << ran.output;
    }

    TemporaryFolder folder_;
};

TEST_F(BenchCommandLine, WritesARecordOfAllThatItMeasured) {
    const Ran ran = bench(fmt::format(
        "--ranks 3 --ops all_reduce --algorithms native,ring --begin 1K --end 4K --factor 2 "
        "--stages 2,3 --params 3K --units 2 --fit --json {} --csv {}",
        file("record.json"), file("record.csv")));
    expect(ran, 0, "= 3 Phi");
    const BenchRecord record = read_bench_json(file("record.json"));
    EXPECT_TRUE(record.complete);
    EXPECT_EQ(record.backend, "threads");
    EXPECT_EQ(record.operations.size(), 6u);
    EXPECT_EQ(record.stages.size(), 4u);
    EXPECT_EQ(record.fits.size(), 2u);
    EXPECT_TRUE(std::filesystem::exists(file("record.csv")));
}

TEST_F(BenchCommandLine, SizesAndTopologiesComeFromTheOptions) {
    const Ran ran =
        bench(fmt::format("--topology lab-2x2-1g --ops all_gather --algorithms "
                          "hierarchical --begin 1K --end 100K --factor 10 --json {}",
                          file("record.json")));
    expect(ran, 0, "2 nodes");
    const BenchRecord record = read_bench_json(file("record.json"));
    ASSERT_EQ(record.operations.size(), 3u);
    EXPECT_EQ(record.operations[2].bytes, 102'400u);
    EXPECT_GT((*record.operations[2].sent)[1], 0u);
}

TEST_F(BenchCommandLine, MeasuresNothingTwice) {
    const Ran ran =
        bench(fmt::format("--ranks 3 --ops all_gather,all_gather --algorithms ring,ring --begin 1 "
                          "--end 32 --factor 2 "
                          "--stages 1,1 --compute-ms 0,0 --params 3K --units 2 --json {}",
                          file("record.json")));
    expect(ran, 0, "= 2 Phi");
    const BenchRecord record = read_bench_json(file("record.json"));
    EXPECT_EQ(record.operations.size(), 3u);  // 12, 24 and 36 bytes
    EXPECT_EQ(record.stages.size(), 1u);
}

TEST_F(BenchCommandLine, SaysWhatIsWrongWithTheOptions) {
    expect(bench("--begin 1M --end 1K"), 2, "--begin 1048576 is above --end 1024");
    expect(bench("--ops all_scatter"), 2, "unknown \"all_scatter\"");
    expect(bench("--ops all_reduce --algorithms spiral"), 2, "there is no algorithm spiral");
    expect(bench("--stages 1 --dtype int8"), 2, "fp32, bf16 or fp16");
    expect(bench("--stages 4"), 2, "--stages");
    expect(bench("--topology nowhere"), 2, "unknown cluster 'nowhere'");
    expect(bench("--topology lab-2x2-1g --ranks 3 --ops all_reduce"), 2, "4 in all, but 3 run");
    expect(bench("--fit --begin 1K --end 2K --factor 2"), 2, "a fit takes at least 3 sizes");
    expect(bench("--ops all_reduce --end 4K --json /nowhere/record.json"), 2, "/nowhere");
}

}  // namespace
}  // namespace zeroproof::harness
