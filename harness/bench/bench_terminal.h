// A bench record as tables in plain text.
#pragma once

#include <string>

#include "harness/bench/bench_record.h"

namespace zeroproof::harness {

// Within 100 columns, without colour. Every foreign text is made printable.
std::string to_bench_terminal(const BenchRecord& record);

// For tables of times and rates, with three digits: "12.3 us", "1.25 GB/s".
std::string shown_seconds(double seconds);
std::string shown_rate(double bytes_per_s);
// Powers of 1024 with no more digits than it takes: "64 KiB", "1.5 MiB".
std::string shown_bytes(std::uint64_t bytes);

}  // namespace zeroproof::harness
