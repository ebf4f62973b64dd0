// zeroproof adapters
#pragma once

#include <string>

namespace zeroproof::harness {

void list_adapters();

// Builds what observes the collectives of torch ahead of its first use. Returns the exit code.
int build_adapters(const std::string& python);

}  // namespace zeroproof::harness
