// zeroproof compare
#pragma once

#include <string>

namespace zeroproof::harness {

struct CompareOptions {
    std::string older;
    std::string newer;
    double level = 0.01;
    bool any_machine = false;
};

// Returns the exit code: 0 nothing is slower, 1 something is, 3 nothing could be told apart. Throws
// scenarios::BadInput for what cannot be read or must not be compared.
int compare_command(const CompareOptions& options);

}  // namespace zeroproof::harness
