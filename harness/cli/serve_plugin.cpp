#include "harness/cli/serve_plugin.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>

#include "harness/plugin/crash_note.h"
#include "harness/plugin/library.h"
#include "harness/plugin/plugin_run.h"
#include "harness/protocol/case_document.h"
#include "harness/protocol/evidence_document.h"
#include "harness/temporary_folder.h"
#include "harness/writers/writer.h"

namespace zeroproof::harness {

namespace {

// Of a rank that waits for another. Deadlocks are noticed at once; whoever started this process
// ends it sooner if a rank computes for too long.
constexpr std::chrono::hours kTimeout{24};

}  // namespace

int describe_plugin(const std::filesystem::path& plugin, const std::filesystem::path& output) {
    note_crashes();
    const PluginLibrary library(plugin);
    const std::string text = describe(library.engine()).declaration + "\n";
    if (output.empty())
        fmt::print("{}", text);
    else
        write_whole(output.string(), text);
    return 0;
}

int serve_plugin(const std::filesystem::path& plugin, const std::filesystem::path& cases,
                 const std::filesystem::path& results) {
    note_crashes();
    const CaseDocument document = read_cases(cases);
    const PluginLibrary library(plugin);
    const PluginDescription description = describe(library.engine());
    for (int rank = 0; rank < document.ranks; ++rank)
        write_ready(results, rank, {description.name, description.version});
    for (PartOfCase part : document.parts) {
        std::optional<TemporaryFolder> between;  // for checkpoints that stay within this process
        if (part.c->has(suites::ActionKind::save)) part.part.between = between.emplace().path();
        const std::vector<RankResult> by_rank =
            run_plugin_part(library.engine(), description, *part.c, part.part, kTimeout);
        for (int rank = 0; rank < document.ranks; ++rank)
            write_evidence(results, part, rank, by_rank[static_cast<std::size_t>(rank)]);
    }
    return 0;
}

}  // namespace zeroproof::harness
