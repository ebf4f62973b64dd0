#include "suites/conformance/observed_gradients.h"

#include <limits>

#include "suites/conformance/comparison.h"

namespace zeroproof::suites {

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

class FromEvidence : public Observed {
  public:
    FromEvidence(const Case& c, const Evidence& evidence) : evidence_(evidence) {
        // Where each micro-step of the program is.
        std::size_t of_segment = 0;
        std::size_t segment = 0;
        for (int a = 0; a < static_cast<int>(c.program.size()); ++a) {
            if (c.program[static_cast<std::size_t>(a)].kind != ActionKind::micro_step) continue;
            const std::size_t in = after_reload(c, a) ? 1 : 0;
            if (in != segment) of_segment = 0;
            segment = in;
            places_.emplace_back(segment, of_segment++);
        }
        for (const ParameterCase& parameter : c.parameters)
            initial_.emplace_back(parameter.elements(), kUnknown);
        if (evidence.segments.empty()) return;
        for (const RankEvidence& rank : evidence.segments.front().by_rank)
            if (!rank.snapshots.empty())
                for (const OwnedSlice& slice : rank.snapshots.front().owned) note(slice);
    }

    double gradient(int rank, std::size_t micro_step, std::size_t use, std::size_t parameter,
                    std::size_t element) const override {
        const auto [segment, number] = places_[micro_step];
        if (segment >= evidence_.segments.size()) return kUnknown;
        const auto& by_rank = evidence_.segments[segment].by_rank;
        if (static_cast<std::size_t>(rank) >= by_rank.size()) return kUnknown;
        const auto& micro_steps = by_rank[static_cast<std::size_t>(rank)].micro_steps;
        if (number >= micro_steps.size()) return kUnknown;
        const auto& gradients = micro_steps[number].gradients;
        if (parameter >= gradients.size() || use >= gradients[parameter].size() ||
            element >= gradients[parameter][use].size())
            return kUnknown;
        return double{gradients[parameter][use][element]};
    }

    double initial_weight(std::size_t parameter, std::size_t element) const override {
        return initial_[parameter][element];
    }

  private:
    void note(const OwnedSlice& slice) {
        std::vector<double>& values = initial_[slice.parameter];
        for (std::size_t i = 0; i < slice.master.size() && slice.begin + i < values.size(); ++i)
            values[slice.begin + i] = double{slice.master[i]};
    }

    const Evidence& evidence_;
    std::vector<std::pair<std::size_t, std::size_t>> places_;  // by micro-step: segment, number
    std::vector<std::vector<double>> initial_;
};

}  // namespace

std::vector<Expected> expect_after(const Case& c, const Meanings& meanings,
                                   const Evidence& evidence) {
    if (!c.transformer) return expect(c, meanings);
    const FromEvidence observed(c, evidence);
    return expect(c, meanings, &observed);
}

}  // namespace zeroproof::suites
