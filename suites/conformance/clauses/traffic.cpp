// How much is sent, of what, when and in which type.
#include <algorithm>
#include <map>

#include "suites/conformance/comparison.h"
#include "suites/conformance/declared_volume.h"
#include "suites/conformance/paper_figures.h"
#include "suites/conformance/partition_model.h"

namespace zeroproof::suites {

std::vector<Clause> traffic_clauses();

namespace {

using collectives::CollectiveRecord;
using collectives::Op;
using collectives::Traffic;
using memory::Phase;

// Of one kind of traffic, in one phase of one action.
struct Volume {
    std::size_t elements = 0;  // nominal: 2P for an all-reduce of P, otherwise P
    std::size_t operations = 0;
};
using Volumes = std::map<std::pair<int, Phase>, Volume>;

// P of an operation, whatever the size of its group.
std::size_t logical_elements(const CollectiveRecord& record) {
    return record.op == Op::all_gather ? record.out_elements : record.in_elements;
}

// Setting up, reading from outside, saving and loading are no part of the volumes.
bool is_training(const CollectiveRecord& record) {
    return record.phase != Phase::initialise && record.phase != Phase::read &&
           record.phase != Phase::save && record.phase != Phase::load;
}

Volumes seen_volumes(const RankEvidence& rank, Traffic traffic) {
    Volumes volumes;
    for (std::size_t i = 0; i < rank.collectives.size(); ++i) {
        const CollectiveRecord& record = rank.collectives[i];
        if (record.traffic != traffic || !is_training(record)) continue;
        Volume& volume = volumes[{rank.collective_actions[i], record.phase}];
        // Control is declared in elements, whatever operation carries them.
        const bool twice = record.op == Op::all_reduce && traffic != Traffic::control;
        volume.elements += logical_elements(record) * (twice ? 2 : 1);
        ++volume.operations;
    }
    return volumes;
}

struct InWindow {
    bool first;  // micro-step of its window
    bool last;
};

// Calls visit(action, kind, place in the window) for the actions of a segment.
template <typename Visit>
void for_each_action(const Case& c, bool behind_reload, Visit&& visit) {
    int micro_steps = 0;
    for (int a = 0; a < static_cast<int>(c.program.size()); ++a) {
        const ActionKind kind = c.program[static_cast<std::size_t>(a)].kind;
        if (kind == ActionKind::micro_step) ++micro_steps;
        if (after_reload(c, a) == behind_reload)
            visit(a, kind, InWindow{micro_steps == 1, micro_steps == c.micro_steps});
        if (kind == ActionKind::step || kind == ActionKind::zero_grad) micro_steps = 0;
    }
}

// No volume in any phase of any action: where nothing is expected, nothing must be seen.
Volumes nothing(const Case& c, bool behind_reload) {
    Volumes volumes;
    for_each_action(c, behind_reload, [&](int action, ActionKind kind, InWindow) {
        if (kind == ActionKind::micro_step) {
            volumes[{action, Phase::forward}] = {};
            volumes[{action, Phase::backward}] = {};
        }
        if (kind == ActionKind::step) volumes[{action, Phase::step}] = {};
        if (kind == ActionKind::evaluate) volumes[{action, Phase::evaluate}] = {};
    });
    return volumes;
}

Volumes paper_volumes_of(const Context& context, bool behind_reload, Traffic traffic) {
    Volumes volumes;
    for (const PaperVolume& volume : paper_volumes(context.c, behind_reload, context.expected))
        if (volume.traffic == traffic)
            volumes[{volume.action, volume.phase}] = {volume.elements, volume.operations};
    return volumes;
}

// As the subject declares them for this stage, in elements alone.
Volumes declared_volumes(const Context& context, const Segment& segment, bool behind_reload,
                         Traffic traffic) {
    const DeclaredStage* stage = declared_stage(context, segment);
    if (stage == nullptr) return paper_volumes_of(context, behind_reload, traffic);
    Volumes volumes;
    const bool are_gradients = traffic == Traffic::gradient;
    const auto expect = [&](int action, Phase phase, const DeclaredTraffic& declared) {
        // What is gathered before use may be frozen, what is sent after a step may not.
        const Counted counted =
            are_gradients || declared.phase == Phase::step ? Counted::trainable : Counted::all;
        const double elements = declared.times * static_cast<double>(padded_elements(
                                                     context.c, segment.ranks, declared.padded,
                                                     counted, declared.per_use));
        const auto rounded = static_cast<std::size_t>(elements);
        volumes[{action, phase}].elements += rounded * (declared.op == Op::all_reduce ? 2 : 1);
    };
    for_each_action(context.c, behind_reload, [&](int action, ActionKind kind, InWindow place) {
        for (const DeclaredTraffic& declared : are_gradients ? stage->gradient : stage->parameter) {
            const bool is_forward = declared.phase == Phase::forward;
            const bool in_micro_step = is_forward || declared.phase == Phase::backward;
            if (kind == ActionKind::micro_step && in_micro_step &&
                (declared.every_micro_step || (is_forward ? place.first : place.last)))
                expect(action, declared.phase, declared);
            if (kind == ActionKind::evaluate && is_forward)
                expect(action, Phase::evaluate, declared);
            if (kind != ActionKind::step || declared.phase != Phase::step) continue;
            const auto at = std::ranges::find(context.expected, action, &Expected::action);
            if (at != context.expected.end() && !at->skipped) expect(action, Phase::step, declared);
        }
    });
    return volumes;
}

enum class Against { paper, declaration };
enum class Measure { elements, operations };

Judgement compare(const Context& context, Traffic traffic, Against against,
                  Measure measure = Measure::elements) {
    const bool operations = measure == Measure::operations;
    Comparison comparison;
    const Case& c = context.c;
    for (std::size_t s = 0; s < context.evidence.segments.size(); ++s) {
        const Segment& segment = context.evidence.segments[s];
        const Volumes expected = against == Against::paper
                                     ? paper_volumes_of(context, s > 0, traffic)
                                     : declared_volumes(context, segment, s > 0, traffic);
        for (std::size_t rank = 0; rank < segment.by_rank.size(); ++rank) {
            Volumes seen = seen_volumes(segment.by_rank[rank], traffic);
            Volumes all = expected;
            all.merge(nothing(c, s > 0));
            all.insert(seen.begin(), seen.end());
            for (const auto& [place, unused] : all) {
                const auto at = expected.find(place);
                const Volume want = at == expected.end() ? Volume{} : at->second;
                const Volume got = seen[place];
                const auto [action, phase] = place;
                const std::size_t wanted = operations ? want.operations : want.elements;
                const std::size_t counted = operations ? got.operations : got.elements;
                // A group of one sends nothing: a declaration need not say that it starts
                // operations.
                const bool is_left_out =
                    against == Against::declaration && segment.ranks == 1 && counted == 0;
                comparison.check(wanted == counted || is_left_out, [&, a = action, ph = phase] {
                    return Discrepancy{
                        .quantity = fmt::format(
                            "{} {} in phase {}",
                            operations ? "operations that carry" : "nominal elements of",
                            collectives::name_of(traffic), memory::name_of(ph)),
                        .expected = fmt::format("{}", wanted),
                        .seen = fmt::format("{}", counted),
                        .rank = static_cast<int>(rank),
                        .action = a,
                        .step = step_number(c, a - 1) + 1,
                        .diagnosis = fmt::format("stage {} on {} ranks, {} micro-steps",
                                                 segment.stage, segment.ranks, c.micro_steps)};
                });
            }
        }
    }
    return comparison.judgement();
}

// Against the paper, and where that does not hold against the declaration.
Judgement volume(const Context& context, Traffic traffic) {
    return or_as_declared(context, compare(context, traffic, Against::paper),
                          [&] { return compare(context, traffic, Against::declaration); });
}

const char* kNoBuckets = "the subject promises no size of a bucket";

Judgement control(const Context& context) {
    if (!context.declaration.control_elements_per_step)
        return {Verdict::not_declared, "the subject promises no amount of control traffic", {}, 0};
    Comparison comparison;
    for (std::size_t s = 0; s < context.evidence.segments.size(); ++s) {
        const Segment& segment = context.evidence.segments[s];
        for (std::size_t rank = 0; rank < segment.by_rank.size(); ++rank) {
            Volumes volumes = nothing(context.c, s > 0);
            for (const auto& [place, volume] :
                 seen_volumes(segment.by_rank[rank], Traffic::control))
                volumes[place] = volume;
            for (const auto& [place, volume] : volumes) {
                const auto [action, phase] = place;
                // What the data-parallel ranks agree on, a tensor-parallel group does too.
                const std::size_t groups = is_cut(context.c) ? 2 : 1;
                const std::size_t most =
                    phase == Phase::step ? groups * *context.declaration.control_elements_per_step
                                         : 0;
                comparison.check(volume.elements <= most, [&, a = action, ph = phase,
                                                           elements = volume.elements] {
                    return Discrepancy{.quantity = fmt::format("elements of control in phase {}",
                                                               memory::name_of(ph)),
                                       .expected = fmt::format("at most {}, as declared", most),
                                       .seen = fmt::format("{}", elements),
                                       .rank = static_cast<int>(rank),
                                       .action = a,
                                       .step = step_number(context.c, a)};
                });
            }
        }
    }
    return comparison.judgement();
}

template <typename Check>
Judgement each_record(const Context& context, Check&& check) {
    Comparison comparison;
    for (const Segment& segment : context.evidence.segments)
        for (std::size_t rank = 0; rank < segment.by_rank.size(); ++rank) {
            const RankEvidence& evidence = segment.by_rank[rank];
            for (std::size_t i = 0; i < evidence.collectives.size(); ++i) {
                const CollectiveRecord& record = evidence.collectives[i];
                if (!is_training(record)) continue;
                const auto result = check(segment, record);
                if (!result) continue;
                comparison.check(result->first, [&] {
                    return Discrepancy{
                        .quantity = fmt::format("{} number {} of {} in phase {}",
                                                collectives::name_of(record.op), record.sequence,
                                                collectives::name_of(record.traffic),
                                                memory::name_of(record.phase)),
                        .expected = result->second.first,
                        .seen = result->second.second,
                        .rank = static_cast<int>(rank),
                        .action = evidence.collective_actions[i]};
                });
            }
        }
    return comparison.judgement("nothing was sent");
}

using Result = std::optional<std::pair<bool, std::pair<std::string, std::string>>>;

Judgement wire_type(const Context& context) {
    const memory::DType weights = weight_type(context.c.precision);
    const auto compare_types = [&](bool as_declared) {
        return each_record(
            context, [&](const Segment& segment, const CollectiveRecord& record) -> Result {
                if (record.traffic == Traffic::control) return {};
                memory::DType type = weights;
                const DeclaredStage* stage = declared_stage(context, segment);
                if (as_declared && stage != nullptr && record.traffic == Traffic::gradient &&
                    stage->gradient_type.contains(context.c.precision))
                    type = stage->gradient_type.at(context.c.precision);
                return {{record.type == type,
                         {std::string(memory::name_of(type)),
                          std::string(memory::name_of(record.type))}}};
            });
    };
    return or_as_declared(context, compare_types(false), [&] { return compare_types(true); });
}

Judgement not_empty(const Context& context) {
    return each_record(context, [](const Segment&, const CollectiveRecord& record) -> Result {
        return {{record.in_elements + record.out_elements > 0, {"some elements", "none"}}};
    });
}

Judgement bucket_size(const Context& context) {
    if (!context.declaration.buckets) return {Verdict::not_declared, kNoBuckets, {}, 0};
    return each_record(context,
                       [&](const Segment& segment, const CollectiveRecord& record) -> Result {
                           if (record.traffic == Traffic::control) return {};
                           const auto n = static_cast<std::size_t>(segment.ranks);
                           const std::size_t most = round_up(context.c.bucket_elements, n);
                           return {{logical_elements(record) <= most,
                                    {fmt::format("at most a bucket, {} elements", most),
                                     fmt::format("{}", logical_elements(record))}}};
                       });
}

// The operations that may carry a kind of traffic: by the paper one, else those declared.
std::vector<Op> allowed_operations(const DeclaredStage* stage, int number, Traffic traffic) {
    if (stage == nullptr)
        return {traffic == Traffic::parameter ? Op::all_gather
                : number == 0                 ? Op::all_reduce
                                              : Op::reduce_scatter};
    std::vector<Op> operations;
    for (const DeclaredTraffic& declared :
         traffic == Traffic::gradient ? stage->gradient : stage->parameter)
        operations.push_back(declared.op);
    return operations;
}

// Gradients or weights; what tensor-parallel ranks exchange has clauses of its own.
bool is_of_states(const CollectiveRecord& record) {
    return record.traffic == Traffic::gradient || record.traffic == Traffic::parameter;
}

Judgement kind(const Context& context) {
    const auto compare_kinds = [&](bool as_declared) {
        return each_record(
            context, [&](const Segment& segment, const CollectiveRecord& record) -> Result {
                // In a group of one nothing travels, so a declaration need not name the operation.
                if (!is_of_states(record) || (as_declared && record.group.size() == 1)) return {};
                const std::vector<Op> allowed =
                    allowed_operations(as_declared ? declared_stage(context, segment) : nullptr,
                                       segment.stage, record.traffic);
                std::string names;
                for (const Op op : allowed)
                    names += (names.empty() ? "" : " or ") + std::string(collectives::name_of(op));
                return {{std::ranges::count(allowed, record.op) > 0,
                         {names.empty() ? "nothing" : names,
                          std::string(collectives::name_of(record.op))}}};
            });
    };
    return or_as_declared(context, compare_kinds(false), [&] { return compare_kinds(true); });
}

constexpr std::string_view kVolume = "arXiv 1910.02054, section 7";

}  // namespace

std::vector<Clause> traffic_clauses() {
    return {
        {"TRAFFIC.GRADIENT",
         "Gradients are reduced once per window in plain data parallelism (2 phi) and stage 1 "
         "(phi), once per micro-step in stages 2 and 3 (phi), during backward; padding counts.",
         kVolume,
         "FC42, VOL",
         "",
         trains,
         [](const Context& context) { return volume(context, Traffic::gradient); },
         {Observation::collectives}},
        {"TRAFFIC.PARAMETER",
         "Weights are gathered once after each step taken in stages 1 and 2 (phi), before each "
         "forward and each backward in stage 3 (phi each), and never in plain data parallelism.",
         kVolume,
         "FC42, FC15, VOL",
         "",
         trains,
         [](const Context& context) { return volume(context, Traffic::parameter); },
         {Observation::collectives}},
        {"TRAFFIC.CONTROL",
         "Scalars and flags are sent in the step alone, and no more of them than declared.",
         "docs/specification.md, Bytes and elements",
         "FC42, VOL",
         "",
         trains,
         control,
         {Observation::collectives}},
        {"TRAFFIC.OPERATIONS",
         "Each bucket travels in one operation: as many operations as buckets, in each phase.",
         "docs/specification.md, Bytes and elements",
         "FC42, FC07, VOL",
         "",
         trains,
         [](const Context& context) -> Judgement {
             if (!context.declaration.buckets) return {Verdict::not_declared, kNoBuckets, {}, 0};
             const Judgement gradients =
                 compare(context, Traffic::gradient, Against::paper, Measure::operations);
             if (gradients.verdict == Verdict::fail) return gradients;
             return compare(context, Traffic::parameter, Against::paper, Measure::operations);
         },
         {Observation::collectives}},
        {"TRAFFIC.KIND",
         "Gradients are all-reduced in plain data parallelism and reduce-scattered in stages 1 to "
         "3; weights are all-gathered.",
         kVolume,
         "FC42, VOL",
         "not exercised: nothing was sent",
         trains,
         kind,
         {Observation::collectives}},
        {"TRAFFIC.TYPE",
         "Gradients and weights travel in the type of the weights.",
         "docs/specification.md, Types",
         "FC21, DTYPE",
         "not exercised: nothing was sent",
         trains,
         wire_type,
         {Observation::collectives}},
        {"TRAFFIC.EMPTY",
         "No operation carries zero elements.",
         "docs/specification.md, Bytes and elements",
         "FC42, FC12",
         "not exercised: nothing was sent",
         trains,
         not_empty,
         {Observation::collectives}},
        {"TRAFFIC.BUCKET",
         "No operation on gradients or weights carries more than a bucket, rounded up to a "
         "multiple of N, whatever the model's size.",
         "arXiv 1910.02054, section 6.2",
         "FC07, FC39",
         "not exercised: nothing was sent",
         trains,
         bucket_size,
         {Observation::collectives}},
    };
}

}  // namespace zeroproof::suites
