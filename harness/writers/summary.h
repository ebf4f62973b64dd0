// What a reader sees of a record at a glance: the terminal and Markdown lay out the same summary.
#pragma once

#include <string>
#include <vector>

#include "harness/writers/failure_block.h"
#include "harness/writers/matrix.h"
#include "harness/writers/measurement_table.h"
#include "harness/writers/remarks.h"

namespace zeroproof::harness {

enum class Outcome { conforms, violates, inconclusive };

// Every text is printable.
struct Summary {
    std::vector<std::string> headline;  // sentences
    Matrix matrix;
    MeasurementTable measurements;
    std::vector<FailureBlock> failures;
    std::vector<Section> sections;  // what is neither a pass nor an unexpected failure
    Outcome outcome;
    std::string conclusion;
};

Summary summarise(const Record& record, std::size_t most_measurement_rows);

}  // namespace zeroproof::harness
