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
#include "reference/tensor/matmul.h"

namespace zeroproof::harness {

namespace {

using suites::Case;
using suites::Evidence;
using suites::RunStatus;

class ReferenceSubject : public suites::Subject {
  public:
    explicit ReferenceSubject(const Carrier& carrier) : carrier_(carrier) {
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
        declaration_.peak_bytes_by_category = [](const Case& c, memory::Phase phase, int) {
            return reference_peak_bytes_by_category(c, phase);
        };
        declaration_.trains_transformers = carrier.algorithms == nullptr;
        if (carrier.algorithms == nullptr) return;
        declaration_.name = fmt::format("reference by {}", carrier.algorithms->name);
        declaration_.not_promised["TRANSPORT.ACCUMULATION"] =
            "ranks hand each other partial sums in the type of the operation, so that those of a "
            "16-bit type are rounded at each hop";
    }

    const suites::Declaration& declaration() const override { return declaration_; }

    Evidence run(const Case& c, std::chrono::milliseconds timeout) override {
        if (c.transport) return run_transport(c, timeout, carrier_);
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
    bool run_segment(const Case& c, const ProgramPart& part, std::chrono::milliseconds timeout,
                     Evidence& evidence) const {
        suites::Segment& segment =
            evidence.segments.emplace_back(suites::Segment{part.ranks, part.stage, {}, {}});
        std::vector<suites::RankEvidence> all =
            run_reference_part(c, part, timeout, evidence.status, evidence.message, carrier_);
        // Neighbours are of one tensor-parallel group.
        const auto peers =
            static_cast<std::size_t>(c.transformer ? c.transformer->tensor_parallel : 1);
        segment.peers.resize(peers - 1);
        for (std::size_t rank = 0; rank < all.size(); ++rank) {
            const std::size_t peer = rank % peers;
            (peer == 0 ? segment.by_rank : segment.peers[peer - 1]).push_back(std::move(all[rank]));
        }
        return evidence.status == RunStatus::completed;
    }

    Carrier carrier_;
    suites::Declaration declaration_;
};

}  // namespace

std::vector<suites::RankEvidence> run_reference_part(const Case& c, const ProgramPart& part,
                                                     std::chrono::milliseconds timeout,
                                                     RunStatus& status, std::string& message,
                                                     const Carrier& carrier) {
    const int peers = c.transformer ? c.transformer->tensor_parallel : 1;
    std::vector<std::unique_ptr<ReferenceRank>> ranks;
    for (int rank = 0; rank < part.ranks * peers; ++rank)
        ranks.push_back(std::make_unique<ReferenceRank>(c, part, rank / peers, rank % peers));
    collectives::ThreadWorld world(part.ranks * peers, timeout);
    const auto failure = world.run([&](collectives::Communicator& communicator) {
        if (c.transformer) reference::set_threads_per_rank(1);
        with_carrier(carrier, communicator, [&](collectives::Communicator& group) {
            ranks[static_cast<std::size_t>(group.rank())]->run(group);
        });
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

std::unique_ptr<suites::Subject> make_reference_subject(const Carrier& carrier) {
    return std::make_unique<ReferenceSubject>(carrier);
}

}  // namespace zeroproof::harness
