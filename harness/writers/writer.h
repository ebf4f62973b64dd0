// The views of a record, and how a file is written whole or not at all.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

#include "harness/record.h"

namespace zeroproof::harness {

// Names the path and the system's reason.
class Unwritable : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// A device or a pipe is written in place, everything else beside its target and then renamed.
// Throws Unwritable; the target is then as it was.
void write_whole(const std::filesystem::path& path, std::string_view text);

// Throws Unwritable if write_whole could not even begin: to be known before a long run, not after.
void check_writable(const std::filesystem::path& path);

// One JSON value, one line for each case, clause and measurement.
std::string to_json(const Record& record);
// A test suite for each clause, a test case for each case.
std::string to_junit(const Record& record);
// A row for each case and clause, RFC 4180.
std::string to_csv(const Record& record);
std::string to_markdown(const Record& record);
std::string to_terminal(const Record& record, bool colour);

}  // namespace zeroproof::harness
