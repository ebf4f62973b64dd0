// A bench record as a file. docs/bench.md has the form, docs/bench.schema.json the schema.
#pragma once

#include <filesystem>
#include <string>

#include "harness/bench/bench_record.h"

namespace zeroproof::harness {

inline constexpr const char* kBenchFormat = "zeroproof bench record";
// Changes when a field changes its meaning or goes.
inline constexpr int kBenchVersion = 1;

// One line for each result. Beside each timing stand its median and what follows from it, for
// readers. Throws std::logic_error for a record that read_bench_json would refuse.
std::string to_bench_json(const BenchRecord& record);
// Whole or not at all; throws Unwritable.
void write_bench_json(const std::filesystem::path& file, const BenchRecord& record);

// `text` may be anybody's: throws scenarios::BadInput that names `file` and the place in it. What
// follows from the times is not read.
BenchRecord parse_bench_json(std::string_view text, const std::string& file);
BenchRecord read_bench_json(const std::string& file);

}  // namespace zeroproof::harness
