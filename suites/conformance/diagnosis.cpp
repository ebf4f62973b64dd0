#include "suites/conformance/diagnosis.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "suites/conformance/gradients.h"

namespace zeroproof::suites {

namespace {

// Sums of contributions, each divided by N * GA as in the mean.
class Ledger {
  public:
    Ledger(const Case& c, int ranks, const Expected& expected, std::size_t parameter,
           std::size_t element)
        : gradients_(c, ranks),
          ranks_(ranks),
          first_(expected.window_begin),
          last_(expected.window_end),
          uses_(uses_of(c, parameter)),
          parameter_(parameter),
          element_(element),
          divisor_(double(ranks) * c.micro_steps) {}

    // Negative: all of them.
    double part(int rank, long long micro_step, long long use) const {
        double sum = 0;
        for (int r = 0; r < ranks_; ++r)
            for (std::size_t k = first_; k < last_; ++k)
                for (std::size_t u = 0; u < uses_; ++u)
                    if ((rank < 0 || r == rank) &&
                        (micro_step < 0 || k == first_ + static_cast<std::size_t>(micro_step)) &&
                        (use < 0 || u == static_cast<std::size_t>(use)))
                        sum += gradients_.value({r, k, u}, parameter_, element_);
        return sum / divisor_;
    }
    int micro_steps() const { return static_cast<int>(last_ - first_); }
    int uses() const { return static_cast<int>(uses_); }

  private:
    Gradients gradients_;
    int ranks_;
    std::size_t first_;
    std::size_t last_;
    std::size_t uses_;
    std::size_t parameter_;
    std::size_t element_;
    double divisor_;
};

std::string about_contributions(const Ledger& ledger, int ranks, double expected, double seen) {
    const auto explains = [&](double part) -> std::string {
        if (part == 0) return {};
        if (seen == expected - part) return "is missing";
        if (seen == expected + part) return "is counted twice";
        return {};
    };
    std::vector<std::string> found;
    const auto consider = [&](double part, const std::string& whose) {
        if (const std::string what = explains(part); !what.empty())
            found.push_back(fmt::format("the contribution of {} {}", whose, what));
    };
    for (int k = 0; ledger.micro_steps() > 1 && k < ledger.micro_steps(); ++k)
        consider(ledger.part(-1, k, -1), fmt::format("all ranks, micro-step {}", k));
    for (int use = 0; ledger.uses() > 1 && use < ledger.uses(); ++use)
        consider(ledger.part(-1, -1, use), fmt::format("use {} of the tied parameter", use));
    for (int rank = 0; ranks > 1 && rank < ranks; ++rank)
        consider(ledger.part(rank, -1, -1), fmt::format("rank {}", rank));
    for (int rank = 0; found.empty() && rank < ranks; ++rank)
        for (int k = 0; k < ledger.micro_steps(); ++k)
            consider(ledger.part(rank, k, -1), fmt::format("rank {}, micro-step {}", rank, k));
    for (int k = 0; found.empty() && ledger.micro_steps() > 2 && k < ledger.micro_steps(); ++k)
        if (seen == ledger.part(-1, k, -1))
            found.push_back(fmt::format("only micro-step {} contributed", k));
    if (found.empty()) return {};
    std::string text = found.front();
    if (found.size() > 1) text += fmt::format(" (or {})", found[1]);
    return text;
}

}  // namespace

std::string diagnose_gradient(const Case& c, int ranks, const Expected& expected,
                              const std::vector<Expected>& history, std::size_t parameter,
                              std::size_t element, double seen) {
    if (c.transformer) return {};  // the digits of its gradients tell nothing
    const auto& gradients = expected.parameters[parameter].gradient;
    const double wanted = gradients[element].value;
    if (std::isnan(seen))
        return "not a number: memory that was never written, padding, or a buffer read before its "
               "collective had ended";
    if (wanted != 0) {
        const double n = ranks;
        const double ga = c.micro_steps;
        const struct {
            double factor;
            const char* meaning;
        } factors[] = {{n, "N times too large: a sum in place of a mean over ranks"},
                       {ga, "GA times too large: not divided by the micro-steps"},
                       {n * ga, "N * GA times too large: a plain sum"},
                       {1 / n, "N times too small: divided by the ranks twice"},
                       {1 / ga, "GA times too small: divided by the micro-steps twice"},
                       {c.loss_scale_at_start(), "not unscaled: the loss scale is still in it"},
                       {1 / c.loss_scale_at_start(), "unscaled twice"}};
        for (const auto& [factor, meaning] : factors)
            if (factor != 1 && seen == wanted * factor) return meaning;
    }
    const Ledger ledger(c, ranks, expected, parameter, element);
    if (std::string text = about_contributions(ledger, ranks, wanted, seen); !text.empty())
        return text;
    for (const Expected& earlier : history) {
        if (earlier.action >= expected.action || earlier.action < 0 ||
            earlier.kind != ActionKind::step)
            continue;
        const double old = earlier.parameters[parameter].gradient[element].value;
        if (old == 0) continue;
        if (seen == old) return "the value of an earlier step: stale";
        if (seen == wanted + old) return "an earlier step's gradient is still in it: not cleared";
    }
    for (std::size_t e = 0; e < gradients.size(); ++e)
        if (e != element && seen != 0 && gradients[e].value == seen)
            return fmt::format("the value of element {} of the same parameter: shifted by {}", e,
                               static_cast<long long>(e) - static_cast<long long>(element));
    if (seen == 0) return "zero: nothing arrived";
    return {};
}

}  // namespace zeroproof::suites
