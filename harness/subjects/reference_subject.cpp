#include "harness/subjects/reference_subject.h"

#include <fmt/format.h>

#include <exception>
#include <optional>

#include "collectives/metered.h"
#include "collectives/thread_world.h"
#include "harness/subjects/reference_peak.h"
#include "harness/subjects/reference_rank.h"
#include "harness/subjects/transport_run.h"
#include "harness/temporary_folder.h"

namespace zeroproof::harness {

namespace {

using suites::Case;
using suites::Evidence;
using suites::RunStatus;

class ReferenceSubject : public suites::Subject {
  public:
    ReferenceSubject() {
        declaration_.name = "reference";
        declaration_.stages = {0, 1, 2, 3};
        declaration_.precisions = {suites::Precision::fp32, suites::Precision::bf16,
                                   suites::Precision::fp16};
        declaration_.actions = suites::common_actions();
        for (const auto kind :
             {suites::ActionKind::save, suites::ActionKind::load, suites::ActionKind::rate,
              suites::ActionKind::clip, suites::ActionKind::scale_gradient,
              suites::ActionKind::scale_weight})
            declaration_.actions.insert(kind);
        declaration_.tests_transport = true;
        declaration_.buckets = true;
        declaration_.norm_accumulation = memory::DType::fp64;
        declaration_.control_elements_per_step = 2;
        declaration_.peak_bytes = [](const Case& c, memory::Phase phase, int) {
            return reference_peak_bytes(c, phase);
        };
    }

    const suites::Declaration& declaration() const override { return declaration_; }

    Evidence run(const Case& c, std::chrono::milliseconds timeout) override {
        if (c.transport) return run_transport(c, timeout);
        Evidence evidence;
        if (const std::string outside = outside_declaration(c, declaration_); !outside.empty()) {
            evidence.status = RunStatus::rejected;
            evidence.message = fmt::format("the reference has no {}", outside);
            return evidence;
        }
        std::optional<TemporaryFolder> folder;
        if (saves(c)) folder.emplace();
        for (const ProgramPart& part :
             parts_of(c, folder ? folder->path() : std::filesystem::path()))
            if (!run_segment(c, part, timeout, evidence)) break;
        return evidence;
    }

  private:
    // Whether it came to its end.
    static bool run_segment(const Case& c, const ProgramPart& part,
                            std::chrono::milliseconds timeout, Evidence& evidence) {
        evidence.segments.push_back(
            {part.ranks, part.stage,
             run_reference_part(c, part, timeout, evidence.status, evidence.message)});
        return evidence.status == RunStatus::completed;
    }

    suites::Declaration declaration_;
};

}  // namespace

std::vector<suites::RankEvidence> run_reference_part(const Case& c, const ProgramPart& part,
                                                     std::chrono::milliseconds timeout,
                                                     RunStatus& status, std::string& message) {
    std::vector<std::unique_ptr<ReferenceRank>> ranks;
    for (int rank = 0; rank < part.ranks; ++rank)
        ranks.push_back(std::make_unique<ReferenceRank>(c, part, rank));
    collectives::ThreadWorld world(part.ranks, timeout);
    const auto failure = world.run([&](collectives::Communicator& communicator) {
        ranks[static_cast<std::size_t>(communicator.rank())]->run(communicator);
    });
    std::vector<suites::RankEvidence> evidence;
    for (const auto& rank : ranks) evidence.push_back(rank->take_evidence());
    if (!failure) return evidence;
    status = RunStatus::failed;
    message = failure->message;
    try {
        if (failure->rank_exception) std::rethrow_exception(failure->rank_exception);
    } catch (const reference::Unsupported& unsupported) {
        status = RunStatus::rejected;
        message = unsupported.what();
    } catch (const std::exception&) {
        // Told by the message.
    }
    return evidence;
}

std::unique_ptr<suites::Subject> make_reference_subject() {
    return std::make_unique<ReferenceSubject>();
}

}  // namespace zeroproof::harness
