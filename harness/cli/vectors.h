// zeroproof vectors
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "harness/selection.h"

namespace zeroproof::harness {

struct VectorsExportOptions {
    std::string folder;
    Selection selection;
    std::size_t sample = 0;  // most cases of a family; 0: all
    std::string ids_file;    // one id a line, in place of the selection
};

struct VectorsCheckOptions {
    std::string folder;
    std::string results;
    std::string declaration_file;
    bool any_version = false;
    std::vector<std::string> filters;
    std::vector<std::string> clauses;  // patterns; empty: all
    std::string expect_file;
    std::string json_file;
    std::string junit_file;
    std::string csv_file;
    std::string markdown_file;
    std::string command;  // as typed, for the record
};

// Both return the exit code, and throw scenarios::BadInput and Unwritable for what the user got
// wrong.
int export_vectors_command(const VectorsExportOptions& options);
int check_vectors_command(const VectorsCheckOptions& options);

}  // namespace zeroproof::harness
