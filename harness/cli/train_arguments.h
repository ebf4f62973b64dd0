// The arguments of zeroproof train.
#pragma once

#include <CLI/CLI.hpp>

#include "harness/cli/train.h"

namespace zeroproof::harness {

// Adds the command; `options` and `code` outlive the parsing.
void add_train(CLI::App& app, TrainCommand& options, int& code);

}  // namespace zeroproof::harness
