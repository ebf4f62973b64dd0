#include "harness/cli/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/bench/bench_json.h"
#include "harness/bench/compare.h"
#include "harness/writers/text.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {

namespace {

void describe(std::string_view which, const std::string& file, const BenchRecord& record) {
    fmt::print("{} {}, {} on {}{}\n", which, printable(file), printable(record.started),
               printable(record.host),
               record.complete ? "" : ", not complete: " + printable(record.ended_by));
}

}  // namespace

int compare_command(const CompareOptions& options) {
    const BenchRecord older = read_bench_json(options.older);
    const BenchRecord newer = read_bench_json(options.newer);
    const std::vector<std::string> differences = differences_of_machine(older, newer);
    if (!differences.empty() && !options.any_machine)
        throw scenarios::BadInput(
            fmt::format("{} and {} were not measured in the same place: {}; --any-machine compares "
                        "them all the same",
                        options.older, options.newer, fmt::join(differences, ", ")));
    describe("OLD", options.older, older);
    describe("NEW", options.newer, newer);
    for (const std::string& difference : differences)
        for (const std::string& line : wrapped(fmt::format("Note: {}.", difference), 100))
            fmt::print("{}\n", line);
    const ComparedRecords records = compare(older, newer, options.level);
    fmt::print("\n{}", to_terminal(records));
    return exit_code(records);
}

}  // namespace zeroproof::harness
