// An engine on all ranks of a case.
#pragma once

#include <chrono>
#include <vector>

#include "harness/plugin/library.h"
#include "harness/protocol/evidence_document.h"

namespace zeroproof::harness {

// By rank. Does not throw for what the engine does, as far as it leaves this process alive.
std::vector<RankResult> run_plugin_part(const zeroproof_engine& engine,
                                        const PluginDescription& description, const suites::Case& c,
                                        const ProgramPart& part, std::chrono::milliseconds timeout);

}  // namespace zeroproof::harness
