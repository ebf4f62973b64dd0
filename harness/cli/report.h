// zeroproof report
#pragma once

#include <string>
#include <vector>

namespace zeroproof::harness {

struct ReportOptions {
    std::vector<std::string> records;
    std::string output = "zeroproof-report.html";  // or a folder, for report.html in it
    std::string python;                            // interpreter; empty: found
};

// Writes one page, and its figures as files into a folder beside it. Returns the exit code. Throws
// scenarios::BadInput for a record or an interpreter that does not do, and Unwritable.
int report_command(const ReportOptions& options);

}  // namespace zeroproof::harness
