// Bytes and elements as measured, beside the formulas.
#pragma once

#include <string>
#include <vector>

#include "harness/record.h"

namespace zeroproof::harness {

struct MeasurementRow {
    int stage;
    std::string bytes_formula;
    std::string bytes_nominal;
    std::string bytes_exact;
    std::string bytes_seen;
    bool bytes_equal;
    std::string elements_formula;
    std::string elements_nominal;
    std::string elements_exact;
    std::string elements_seen;
    bool elements_equal;
    std::string elements_sent;
    bool operator==(const MeasurementRow&) const = default;
};

// What the stages are compared under.
struct MeasurementGroup {
    std::string precision;
    int ranks;
    int micro_steps;
    std::size_t phi;
    std::vector<MeasurementRow> rows;  // by stage
};

struct MeasurementTable {
    std::vector<MeasurementGroup> groups;
    std::size_t groups_left_out = 0;
    bool bytes_differ = false;  // somewhere, so that each row tells
    bool elements_differ = false;
    std::vector<std::string> sentences;  // what holds of all configurations
};

// Groups that differ from the formulas are shown first, then some from all over the range.
MeasurementTable measurement_table(const Record& record, std::size_t most_rows);

}  // namespace zeroproof::harness
