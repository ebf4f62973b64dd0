// A bench record as tables of values, RFC 4180, for spreadsheets and scripts.
#pragma once

#include <string>

#include "harness/bench/bench_record.h"

namespace zeroproof::harness {

// A row for each result: operations, then stages. What does not apply or is not known is empty.
std::string to_bench_csv(const BenchRecord& record);

}  // namespace zeroproof::harness
