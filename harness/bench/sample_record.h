// For tests: records whose times are made up, by reports/tests/make_sample.py.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/bench/bench_json.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {

// Of the shape "1x4", "2x2" or "4x2".
inline std::string sample_file(const std::string& shape) {
    return std::string(ZEROPROOF_SOURCE_DIR) + "/reports/tests/data/sample-" + shape + ".json";
}
inline scenarios::Json sample_json(const std::string& shape) {
    const std::string file = sample_file(shape);
    return scenarios::parse_json(scenarios::read_text_file(file), file);
}
inline BenchRecord sample_record(const std::string& shape) {
    return read_bench_json(sample_file(shape));
}

}  // namespace zeroproof::harness
