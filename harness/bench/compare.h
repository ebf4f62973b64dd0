// Two bench records of the same thing: what has become slower or faster beyond the noise.
#pragma once

#include <string>
#include <vector>

#include "harness/bench/bench_record.h"

namespace zeroproof::harness {

enum class Change { slower, faster, no_difference, too_few_repeats };
std::string_view name_of(Change change);

// A result that stands in both.
struct Comparison {
    std::string identity;  // printable
    Change change = Change::no_difference;
    std::size_t old_repeats = 0;
    std::size_t new_repeats = 0;
    double old_median_seconds = 0;
    double new_median_seconds = 0;
    double shift_seconds = 0;  // Hodges and Lehmann's, new minus old
    // One-sided, adjusted for how many are compared: that new is no slower, and no faster.
    double p_slower = 1;
    double p_faster = 1;

    double ratio() const { return new_median_seconds / old_median_seconds; }
    double p() const { return p_slower < p_faster ? p_slower : p_faster; }
};

struct ComparedRecords {
    double level = 0;
    std::vector<Comparison> compared;  // the one that has slowed most first
    // With so many in both records and nothing equal, the least difference that repeats can show is
    // shown.
    std::size_t repeats_needed = 0;
    std::vector<std::string> only_in_old;
    std::vector<std::string> only_in_new;

    std::size_t count(Change change) const;
};

// Each time is one observation. All that stand in both count for Holm's correction, once for
// "slower" and once for "faster". One with too few repeats to be told apart by itself is said to be
// so, unless the correction, which grows milder with each difference found, tells it yet.
ComparedRecords compare(const BenchRecord& older, const BenchRecord& newer, double level);

// Why times of the two say nothing about a change: another backend, topology or number of
// processors. A sentence each.
std::vector<std::string> differences_of_machine(const BenchRecord& older, const BenchRecord& newer);

// Tables in plain text, within 100 columns.
std::string to_terminal(const ComparedRecords& records);

// 0 nothing is slower, 1 something is, 3 nothing could be told apart, for want of results that
// stand in both or of repeats.
int exit_code(const ComparedRecords& records);

}  // namespace zeroproof::harness
