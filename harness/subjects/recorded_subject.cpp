#include "harness/subjects/recorded_subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "harness/protocol/joined_evidence.h"
#include "harness/writers/text.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {

namespace {

using suites::Case;
using suites::Evidence;
using suites::RunStatus;

class RecordedSubject : public suites::Subject {
  public:
    explicit RecordedSubject(RecordedOptions options) : options_(std::move(options)) {
        for (const RecordedCase& recorded : options_.cases) {
            parts_[recorded.c] = &recorded.parts;
            if (!recorded.twin_parts.empty())
                parts_[&recorded.c->twin.front()] = &recorded.twin_parts;
        }
    }

    const suites::Declaration& declaration() const override { return options_.declaration; }

    Evidence run(const Case& c, std::chrono::milliseconds) override {
        const auto parts = parts_.find(&c);
        if (parts == parts_.end()) throw std::logic_error("a case without a place for results");
        Evidence evidence;
        for (const RecordedPart& part : *parts->second) {
            Evidence more = read(part);
            evidence.status = more.status;
            evidence.message = std::move(more.message);
            if (more.status != RunStatus::completed) {
                // Each launch refuses before work of its own: it knows nothing of the one before.
                if (more.status == RunStatus::rejected) evidence.segments.clear();
                break;
            }
            evidence.observed.keep_common(more.observed);
            evidence.segments.push_back(std::move(more.segments.front()));
        }
        return evidence;
    }

  private:
    Evidence read(const RecordedPart& recorded) const {
        const PartOfCase& part = recorded.part;
        const std::filesystem::path folder = options_.results / recorded.launch;
        std::vector<RankResult> ranks;
        std::string missing;
        try {
            if (const std::string unfit = what_is_unfit(folder, part.part.ranks); !unfit.empty())
                return without_run(RunStatus::environment, unfit);
            for (int rank = 0; rank < part.part.ranks; ++rank) {
                if (has_finished(folder, part, rank)) {
                    ranks.push_back(read_evidence(folder, part, rank));
                    if (ranks.back().status == RunStatus::failed)
                        return without_run(RunStatus::failed,
                                           fmt::format("rank {}: {}", rank, ranks.back().message));
                } else if (missing.empty()) {
                    missing =
                        (folder / folder_of(part) / fmt::format("rank-{}.json", rank)).string();
                }
            }
        } catch (const scenarios::BadInput& error) {
            return without_run(RunStatus::adapter_failed, error.what());
        }
        if (!missing.empty())
            return without_run(RunStatus::environment,
                               fmt::format("results are not there: {}", missing));
        return joined(part, std::move(ranks));
    }

    // What is wrong with the version of a rank, if the declaration is for one.
    std::string what_is_unfit(const std::filesystem::path& folder, int ranks) const {
        const std::string& wanted = options_.declaration.version;
        if (wanted.empty() || options_.any_version) return {};
        for (int rank = 0; rank < ranks; ++rank) {
            const auto ready = read_ready(folder, rank);
            if (!ready)
                return fmt::format("results are not there: {} would tell the version",
                                   (folder / fmt::format("ready-{}.json", rank)).string());
            if (ready->version.substr(0, ready->version.find('+')) != wanted)
                return fmt::format(
                    "results are of version {} of {}, and its declaration is for {}: judge by it "
                    "all the same with --any-version",
                    printable(ready->version), options_.declaration.name, wanted);
        }
        return {};
    }

    RecordedOptions options_;
    std::map<const Case*, const std::vector<RecordedPart>*> parts_;
};

}  // namespace

std::unique_ptr<suites::Subject> make_recorded_subject(RecordedOptions options) {
    return std::make_unique<RecordedSubject>(std::move(options));
}

}  // namespace zeroproof::harness
