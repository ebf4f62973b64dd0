#include "harness/cli/serve.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>

#include "harness/protocol/case_document.h"
#include "harness/protocol/evidence_document.h"
#include "harness/subjects/reference_subject.h"
#include "harness/temporary_folder.h"
#include "harness/version.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {

namespace {

using suites::RunStatus;

constexpr std::chrono::seconds kTimeout{60};  // of a rank that waits for another

std::vector<RankResult> run_part(PartOfCase part, const suites::Declaration& declaration) {
    std::vector<RankResult> results(static_cast<std::size_t>(part.part.ranks));
    RunStatus status = RunStatus::completed;
    std::string message;
    if (const std::string outside = outside_declaration(*part.c, declaration); !outside.empty()) {
        status = RunStatus::rejected;
        message = fmt::format("the reference has no {}", outside);
    } else {
        std::optional<TemporaryFolder> between;  // for checkpoints that stay within this process
        if (part.c->has(suites::ActionKind::save)) part.part.between = between.emplace().path();
        std::vector<suites::RankEvidence> evidence =
            run_reference_part(*part.c, part.part, kTimeout, status, message);
        for (std::size_t rank = 0; rank < results.size(); ++rank)
            results[rank].evidence = std::move(evidence[rank]);
    }
    for (RankResult& result : results) {
        result.status = status;
        result.message = message;
        result.observed = suites::Observations::all();
    }
    return results;
}

}  // namespace

int serve(const std::string& subject, const std::filesystem::path& cases,
          const std::filesystem::path& results) {
    const auto reference = make_reference_subject();
    const suites::Declaration& declaration = reference->declaration();
    if (subject != declaration.name)
        throw scenarios::BadInput(
            fmt::format("unknown subject '{}'; known is: {}", subject, declaration.name));
    const CaseDocument document = read_cases(cases);
    for (int rank = 0; rank < document.ranks; ++rank)
        write_ready(results, rank, {declaration.name, std::string(kVersion)});
    for (const PartOfCase& part : document.parts) {
        const std::vector<RankResult> by_rank = run_part(part, declaration);
        for (int rank = 0; rank < document.ranks; ++rank)
            write_evidence(results, part, rank, by_rank[static_cast<std::size_t>(rank)]);
    }
    return 0;
}

}  // namespace zeroproof::harness
