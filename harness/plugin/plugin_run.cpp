#include "harness/plugin/plugin_run.h"

#include <fmt/format.h>

#include <memory>

#include "collectives/thread_world.h"
#include "harness/plugin/plugin_rank.h"
#include "suites/conformance/declaration_reader.h"

namespace zeroproof::harness {

namespace {

using suites::RunStatus;

RunStatus status_of(zeroproof_status created) {
    if (created == ZEROPROOF_OK) return RunStatus::completed;
    if (created == ZEROPROOF_UNSUPPORTED) return RunStatus::rejected;
    if (created == ZEROPROOF_ENVIRONMENT) return RunStatus::environment;
    return RunStatus::failed;
}

std::vector<RankResult> everywhere(int ranks, RunStatus status, const std::string& message) {
    RankResult result;
    result.status = status;
    result.message = message;
    return std::vector<RankResult>(static_cast<std::size_t>(ranks), result);
}

// The action that the engine has no function for, if any.
std::string missing_action(const suites::Case& c, const suites::Declaration& declaration) {
    for (const suites::Action& action : c.program)
        if (!declaration.actions.contains(action.kind))
            return fmt::format("the engine has no function for the action {}",
                               name_of(action.kind));
    return {};
}

}  // namespace

std::vector<RankResult> run_plugin_part(const zeroproof_engine& engine,
                                        const PluginDescription& description, const suites::Case& c,
                                        const ProgramPart& part,
                                        std::chrono::milliseconds timeout) {
    const suites::Declaration declaration =
        suites::read_declaration(description.declaration, "the declaration");
    if (c.transport)
        return everywhere(part.ranks, RunStatus::rejected,
                          "an engine brings no transport of its own");
    if (const std::string missing = missing_action(c, declaration); !missing.empty())
        return everywhere(part.ranks, RunStatus::rejected, missing);

    std::vector<std::unique_ptr<PluginRank>> ranks;
    for (int rank = 0; rank < part.ranks; ++rank)
        ranks.push_back(std::make_unique<PluginRank>(engine, description, c, part, rank));
    collectives::ThreadWorld world(part.ranks, timeout);
    const auto failure = world.run([&](collectives::Communicator& communicator) {
        ranks[static_cast<std::size_t>(communicator.rank())]->run(communicator);
    });
    const std::string stray = take_stray_calls();
    if (failure || !stray.empty())
        return everywhere(
            part.ranks, RunStatus::failed,
            stray + (failure && !stray.empty() ? "\n  " : "") + (failure ? failure->message : ""));

    std::vector<RankResult> results(ranks.size());
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        const PluginRank& seen = *ranks[rank];
        if (seen.created() != ranks.front()->created())
            return everywhere(part.ranks, RunStatus::failed,
                              fmt::format("the engine's create has returned {} on rank 0 and {} on "
                                          "rank {}: {}{}",
                                          ranks.front()->created(), seen.created(), rank,
                                          ranks.front()->reason(), seen.reason()));
        results[rank].observed = description.observed;
        results[rank].status = status_of(seen.created());
        results[rank].message = seen.reason();
        if (seen.created() == ZEROPROOF_OK) results[rank].evidence = ranks[rank]->take_evidence();
    }
    return results;
}

}  // namespace zeroproof::harness
