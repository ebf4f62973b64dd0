#include "suites/conformance/declared_volume.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "suites/conformance/partition_model.h"

namespace zeroproof::suites {

namespace {

// Elements of the parameters in `members`, each once, rounded up together.
template <typename Belongs>
std::size_t rounded_together(const Case& c, std::size_t multiple, Belongs&& belongs) {
    std::size_t sum = 0;
    for (std::size_t p = 0; p < c.parameters.size(); ++p)
        if (belongs(p)) sum += c.parameters[p].elements();
    return round_up(sum, multiple);
}

}  // namespace

std::size_t padded_elements(const Case& c, int ranks, const Padded& padded, Counted counted,
                            bool per_use) {
    const std::size_t multiple = static_cast<std::size_t>(ranks) * padded.alignment;
    const auto counts = [&](std::size_t p) {
        return counted == Counted::all || c.parameters[p].trainable;
    };
    // Sums over the counted parameters, each rounded up by itself.
    const auto sum_of = [&](auto&& rounded) {
        std::size_t total = 0;
        for (std::size_t p = 0; p < c.parameters.size(); ++p)
            if (counts(p)) total += rounded(c.parameters[p]) * (per_use ? uses_of(c, p) : 1);
        return total;
    };
    std::size_t total = 0;
    switch (padded.padding) {
        case Padding::none: return sum_of([](const ParameterCase& p) { return p.elements(); });
        case Padding::rows:
            return sum_of([&](const ParameterCase& p) {
                const std::size_t rows = p.shape.empty() ? 1 : p.shape.front();
                return rows == 0 ? 0 : round_up(rows, multiple) * (p.elements() / rows);
            });
        case Padding::parameter:
            return sum_of([&](const ParameterCase& p) { return round_up(p.elements(), multiple); });
        case Padding::unit:
            // A tied parameter belongs to the first unit that uses it.
            for (std::size_t u = 0; u < c.units.size(); ++u)
                total += rounded_together(c, multiple, [&](std::size_t p) {
                    const auto first = std::ranges::find_if(c.units, [&](const UnitCase& unit) {
                        return std::ranges::count(unit.parameters, p) > 0;
                    });
                    return counts(p) && first == c.units.begin() + static_cast<std::ptrdiff_t>(u);
                });
            return total;
        case Padding::group:
            for (int g = 0; g < static_cast<int>(c.groups.size()); ++g)
                total += rounded_together(c, multiple, [&](std::size_t p) {
                    return c.parameters[p].trainable && c.parameters[p].group == g;
                });
            return total + rounded_together(c, 1, [&](std::size_t p) {
                       return counts(p) && !c.parameters[p].trainable;
                   });
        case Padding::owned: throw std::logic_error("counted by what each rank owns");
        case Padding::buckets: break;
    }
    const memory::Counts all = counts_of(c, c.stage, ranks);
    return all.padded_trainable + (counted == Counted::all ? all.padded_frozen : 0);
}

const DeclaredStage* declared_stage(const Context& context, const Segment& segment) {
    const auto at = context.declaration.deviating.find(segment.stage);
    return at == context.declaration.deviating.end() ? nullptr : &at->second;
}

Judgement or_as_declared(const Context& context, const Judgement& paper,
                         const std::function<Judgement()>& as_declared) {
    if (paper.verdict != Verdict::fail) return paper;
    const DeclaredStage* declared = nullptr;
    for (const Segment& segment : context.evidence.segments)
        if (declared == nullptr) declared = declared_stage(context, segment);
    if (declared == nullptr) return paper;
    Judgement judgement = as_declared();
    if (judgement.verdict == Verdict::fail) {
        judgement.first.quantity += ", as declared";
        judgement.first.diagnosis +=
            fmt::format("{}the paper has {}", judgement.first.diagnosis.empty() ? "" : "; ",
                        paper.first.expected);
        return judgement;
    }
    return {Verdict::deviates,
            fmt::format("{}: {}; the paper has {}, seen {}", declared->why, paper.first.quantity,
                        paper.first.expected, paper.first.seen),
            {},
            0};
}

}  // namespace zeroproof::suites
