// Bytes per rank, against the formulas.
#include <algorithm>

#include "suites/conformance/comparison.h"
#include "suites/conformance/declared_volume.h"
#include "suites/conformance/paper_figures.h"

namespace zeroproof::suites {

std::vector<Clause> memory_clauses();

namespace {

using memory::Category;

memory::BytesByCategory expected_at_rest(const Context& context, const Segment& segment, int) {
    return paper_bytes_at_rest(context.c, segment.stage, segment.ranks);
}

std::size_t owned_elements(const Segment& segment, int rank) {
    std::size_t elements = 0;
    for (const OwnedSlice& slice :
         segment.by_rank[static_cast<std::size_t>(rank)].snapshots.back().owned)
        elements += slice.elements;
    return elements;
}

memory::BytesByCategory declared_at_rest(const Context& context, const Segment& segment, int rank) {
    const DeclaredStage* stage = declared_stage(context, segment);
    if (stage == nullptr || !stage->bytes.contains(context.c.precision))
        return expected_at_rest(context, segment, rank);
    memory::BytesByCategory expected{};
    for (const auto& [category, declared] : stage->bytes.at(context.c.precision)) {
        const Counted counted = category == Category::parameter ? Counted::all : Counted::trainable;
        if (declared.padded.padding == Padding::owned) {
            expected[static_cast<std::size_t>(category)] =
                owned_elements(segment, rank) * declared.bytes;
            continue;
        }
        const std::size_t elements =
            padded_elements(context.c, segment.ranks, declared.padded, counted);
        expected[static_cast<std::size_t>(category)] =
            elements * declared.bytes /
            static_cast<std::size_t>(declared.sharded ? segment.ranks : 1);
    }
    return expected;
}

using Expectation = memory::BytesByCategory (*)(const Context&, const Segment&, int rank);

// Whether every state is there that a subject makes only once it needs it.
bool is_complete(const Context& context, const Snapshot& snapshot) {
    const Declaration& declaration = context.declaration;
    if (declaration.lazy_states && snapshot.steps_taken == 0) return false;
    if (declaration.meanings.without_gradient == Meanings::WithoutGradient::zero) return true;
    const auto expected = std::ranges::find(context.expected, snapshot.action, &Expected::action);
    return expected != context.expected.end() &&
           std::ranges::all_of(expected->parameters, [](const ExpectedParameter& p) {
               return !p.trained || (p.has_gradient && p.steps_taken > 0);
           });
}

Judgement compare_at_rest(const Context& context, Category category, Expectation expectation) {
    Comparison comparison;
    for (const Segment& segment : context.evidence.segments) {
        for (std::size_t rank = 0; rank < segment.by_rank.size(); ++rank) {
            if (segment.by_rank[rank].snapshots.empty()) continue;
            const std::size_t expected = expectation(
                context, segment, static_cast<int>(rank))[static_cast<std::size_t>(category)];
            for (const Snapshot& snapshot : segment.by_rank[rank].snapshots) {
                // Between micro-steps there may be more: that is a matter of the peak.
                if (snapshot.kind != ActionKind::step) continue;
                if (!is_complete(context, snapshot)) continue;
                const std::size_t seen = snapshot.live_bytes[static_cast<std::size_t>(category)];
                comparison.check(seen == expected, [&] {
                    return Discrepancy{
                        .quantity = fmt::format("bytes of {} at rest", memory::name_of(category)),
                        .expected = fmt::format("{}", expected),
                        .seen = fmt::format("{}", seen),
                        .rank = static_cast<int>(rank),
                        .action = snapshot.action,
                        .step = step_number(context.c, snapshot.action),
                        .diagnosis =
                            fmt::format("stage {} on {} ranks", segment.stage, segment.ranks)};
                });
            }
        }
    }
    return comparison.judgement();
}

Judgement at_rest(const Context& context, Category category) {
    return or_as_declared(context, compare_at_rest(context, category, expected_at_rest),
                          [&] { return compare_at_rest(context, category, declared_at_rest); });
}

// A failure among the categories, else a deviation, else the last.
Judgement worst_at_rest(const Context& context, std::initializer_list<Category> categories) {
    Judgement worst;
    for (const Category category : categories) {
        Judgement judgement = at_rest(context, category);
        if (judgement.verdict == Verdict::fail) return judgement;
        if (worst.verdict != Verdict::deviates) worst = std::move(judgement);
    }
    return worst;
}

Judgement optimizer_at_rest(const Context& context) {
    return worst_at_rest(context, {Category::master, Category::momentum, Category::variance});
}

Judgement nothing_else(const Context& context) {
    return worst_at_rest(context, {Category::buffer, Category::activation, Category::checkpoint});
}

Judgement peak(const Context& context) {
    if (!context.declaration.peak_bytes)
        return {Verdict::not_declared, "the subject does not say what it needs at most", {}, 0};
    Comparison comparison;
    const Segment& segment = context.evidence.segments.front();
    for (std::size_t rank = 0; rank < segment.by_rank.size(); ++rank)
        for (const memory::Phase phase :
             {memory::Phase::forward, memory::Phase::backward, memory::Phase::step}) {
            const std::size_t seen =
                segment.by_rank[rank].peak_bytes[static_cast<std::size_t>(phase)];
            if (seen == 0) continue;
            const std::size_t expected =
                context.declaration.peak_bytes(context.c, phase, static_cast<int>(rank));
            comparison.check(seen == expected, [&] {
                return Discrepancy{
                    .quantity = fmt::format("peak bytes in phase {}", memory::name_of(phase)),
                    .expected = fmt::format("{}", expected),
                    .seen = fmt::format("{}", seen),
                    .rank = static_cast<int>(rank),
                    .diagnosis = fmt::format("{} bytes {} than declared",
                                             seen > expected ? seen - expected : expected - seen,
                                             seen > expected ? "more" : "less")};
            });
        }
    return comparison.judgement("no micro-step");
}

Judgement peak_by_category(const Context& context) {
    if (!context.declaration.peak_bytes_by_category)
        return {Verdict::not_declared, "the subject does not say what it needs at most", {}, 0};
    Comparison comparison;
    const Segment& segment = context.evidence.segments.front();
    for (std::size_t rank = 0; rank < segment.by_rank.size(); ++rank)
        for (const memory::Phase phase :
             {memory::Phase::forward, memory::Phase::backward, memory::Phase::step}) {
            const auto expected = context.declaration.peak_bytes_by_category(
                context.c, phase, static_cast<int>(rank));
            if (!expected) continue;
            for (std::size_t category = 0; category < memory::kCategories; ++category) {
                const std::size_t seen =
                    segment.by_rank[rank]
                        .peak_bytes_by_category[static_cast<std::size_t>(phase)][category];
                comparison.check(seen == (*expected)[category], [&] {
                    return Discrepancy{
                        .quantity = fmt::format("peak bytes of {} in phase {}",
                                                memory::name_of(static_cast<Category>(category)),
                                                memory::name_of(phase)),
                        .expected = fmt::format("{}", (*expected)[category]),
                        .seen = fmt::format("{}", seen),
                        .rank = static_cast<int>(rank),
                        .diagnosis =
                            fmt::format("stage {} on {} ranks", segment.stage, segment.ranks)};
                });
            }
        }
    return comparison.judgement("no micro-step");
}

Judgement growth(const Context& context) {
    Comparison comparison;
    for (const Segment& segment : context.evidence.segments)
        for (std::size_t rank = 0; rank < segment.by_rank.size(); ++rank) {
            const Snapshot* first = nullptr;
            for (const Snapshot& snapshot : segment.by_rank[rank].snapshots) {
                if (snapshot.kind != ActionKind::step || snapshot.action < 0) continue;
                if (!is_complete(context, snapshot)) continue;
                if (first == nullptr) {
                    first = &snapshot;
                    continue;
                }
                comparison.check(snapshot.live_bytes == first->live_bytes, [&] {
                    const auto sum = [](const memory::BytesByCategory& bytes) {
                        std::size_t total = 0;
                        for (const std::size_t b : bytes) total += b;
                        return fmt::format("{}", total);
                    };
                    return Discrepancy{
                        .quantity = "bytes at rest, against those after the first step",
                        .expected = sum(first->live_bytes),
                        .seen = sum(snapshot.live_bytes),
                        .rank = static_cast<int>(rank),
                        .action = snapshot.action,
                        .step = step_number(context.c, snapshot.action)};
                });
            }
        }
    return comparison.judgement("fewer than two steps");
}

constexpr std::string_view kSource = "arXiv 1910.02054, sections 3.1 and 5, figure 1";

}  // namespace

std::vector<Clause> memory_clauses() {
    return {
        {"MEMORY.PARAMETER",
         "At rest a rank keeps all weights in stages 0 to 2 and its N-th part in stage 3, in the "
         "type of the weights and nothing wider.",
         kSource,
         "FC39, FC40, MEM",
         "",
         trains,
         [](const Context& context) { return at_rest(context, Category::parameter); },
         {Observation::live_bytes}},
        {"MEMORY.GRADIENT",
         "At rest a rank keeps a whole gradient in stages 0 and 1 and its N-th part in stages 2 "
         "and 3.",
         kSource,
         "FC39, FC40, MEM",
         "",
         trains,
         [](const Context& context) { return at_rest(context, Category::gradient); },
         {Observation::live_bytes}},
        {"MEMORY.OPTIMIZER",
         "Momentum and variance, and in mixed precision the master, take 4 bytes each for every "
         "element that a rank owns: all in stage 0, its N-th part in stages 1 to 3.",
         kSource,
         "FC39, FC40, MEM",
         "",
         trains,
         optimizer_at_rest,
         {Observation::live_bytes}},
        {"MEMORY.TRANSIENT",
         "Nothing but model states is live between a step and the next window.",
         "arXiv 1910.02054, sections 5.2 and 6.2",
         "FC39, MEM",
         "",
         trains,
         nothing_else,
         {Observation::live_bytes}},
        {"MEMORY.PEAK",
         "The most bytes live at once in forward, backward and step are what the subject declares "
         "for the case.",
         "docs/specification.md, Bytes and elements",
         "FC39, MEM",
         "not declared: the subject names no peak; not exercised: no micro-step",
         trains,
         peak,
         {Observation::peak_bytes}},
        {"MEMORY.CATEGORY",
         "In forward, backward and step the most bytes of each category are those that the subject "
         "declares for the model, the options and the number of ranks.",
         "docs/specification.md, Bytes and elements",
         "FC39, FC45, MEM",
         "not declared: the subject names no peaks; not exercised: no micro-step",
         trains_transformer,
         peak_by_category,
         {Observation::peak_bytes}},
        {"MEMORY.GROWTH",
         "After every step the same number of bytes is live.",
         "docs/specification.md, Bytes and elements",
         "FC39, MEM",
         "not exercised: fewer than two steps",
         trains,
         growth,
         {Observation::live_bytes}},
    };
}

}  // namespace zeroproof::suites
