#include "harness/subjects/reference_subject.h"

#include <fmt/format.h>

#include <exception>

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

// How many actions come before the reload, or all.
std::size_t actions_before_reload(const Case& c) {
    for (std::size_t a = 0; a < c.program.size(); ++a)
        if (c.program[a].kind == suites::ActionKind::reload) return a;
    return c.program.size();
}

class ReferenceSubject : public suites::Subject {
  public:
    ReferenceSubject() {
        declaration_.name = "reference";
        declaration_.stages = {0, 1, 2, 3};
        declaration_.precisions = {suites::Precision::fp32, suites::Precision::bf16,
                                   suites::Precision::fp16};
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
        if (!c.features.empty()) {
            evidence.status = RunStatus::rejected;
            evidence.message = fmt::format("the reference has no {}", c.features.front());
            return evidence;
        }
        const std::size_t reload = actions_before_reload(c);
        if (reload == c.program.size()) {
            run_segment(c, {c.ranks, c.stage, 0, reload, {}, {}}, timeout, evidence);
            return evidence;
        }
        const TemporaryFolder folder;
        if (!run_segment(c, {c.ranks, c.stage, 0, reload, {}, folder.path()}, timeout, evidence))
            return evidence;
        run_segment(c,
                    {c.resume_ranks > 0 ? c.resume_ranks : c.ranks,
                     c.resume_stage >= 0 ? c.resume_stage : c.stage,
                     reload,
                     c.program.size(),
                     folder.path(),
                     {}},
                    timeout, evidence);
        return evidence;
    }

  private:
    // Whether it came to its end.
    static bool run_segment(const Case& c, const ProgramPart& part,
                            std::chrono::milliseconds timeout, Evidence& evidence) {
        std::vector<std::unique_ptr<ReferenceRank>> ranks;
        for (int rank = 0; rank < part.ranks; ++rank)
            ranks.push_back(std::make_unique<ReferenceRank>(c, part, rank));
        collectives::ThreadWorld world(part.ranks, timeout);
        const auto failure = world.run([&](collectives::Communicator& communicator) {
            ranks[static_cast<std::size_t>(communicator.rank())]->run(communicator);
        });
        suites::Segment segment{part.ranks, part.stage, {}};
        for (const auto& rank : ranks) segment.by_rank.push_back(rank->take_evidence());
        evidence.segments.push_back(std::move(segment));
        if (!failure) return true;
        evidence.status = RunStatus::failed;
        evidence.message = failure->message;
        try {
            if (failure->rank_exception) std::rethrow_exception(failure->rank_exception);
        } catch (const reference::Unsupported& unsupported) {
            evidence.status = RunStatus::rejected;
            evidence.message = unsupported.what();
        } catch (const std::exception&) {
            // Told by the message.
        }
        return false;
    }

    suites::Declaration declaration_;
};

}  // namespace

std::unique_ptr<suites::Subject> make_reference_subject() {
    return std::make_unique<ReferenceSubject>();
}

}  // namespace zeroproof::harness
