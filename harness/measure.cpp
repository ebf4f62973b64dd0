#include "harness/measure.h"

#include <fmt/format.h>

#include "memory/formulas.h"
#include "suites/conformance/partition_model.h"

namespace zeroproof::harness {

namespace {

// "2 phi + 14 phi / N": what is replicated and what is partitioned, per parameter.
std::string bytes_formula(int stage, memory::StateBytes bytes) {
    std::size_t whole = 0;
    std::size_t part = 0;
    (stage >= 3 ? part : whole) += bytes.weight;
    (stage >= 2 ? part : whole) += bytes.gradient;
    (stage >= 1 ? part : whole) += bytes.optimizer;
    if (part == 0) return fmt::format("{} phi", whole);
    if (whole == 0) return fmt::format("{} phi / N", part);
    return fmt::format("{} phi + {} phi / N", whole, part);
}

// Times phi, per step: a reduction is phi and a gather is phi, an all-reduce both.
int volumes_per_step(int stage, int micro_steps) {
    switch (stage) {
        case 2: return micro_steps + 1;
        case 3: return 3 * micro_steps;
        default: return 2;
    }
}

}  // namespace

Measurement measure(const Case& c, const suites::Evidence& evidence) {
    const memory::StateBytes bytes = memory::state_bytes(suites::weight_type(c.precision));
    const memory::Counts counts = suites::counts_of(c, c.stage, c.ranks);
    Measurement m;
    m.c = &c;
    m.phi = c.trainable_elements();
    m.bytes_formula = bytes_formula(c.stage, bytes);
    m.bytes_nominal =
        memory::nominal_model_state_bytes(c.stage, bytes, static_cast<double>(m.phi), c.ranks);
    m.bytes_exact = memory::exact_model_state_bytes(c.stage, bytes, counts, c.ranks).total();
    const int volumes = volumes_per_step(c.stage, c.micro_steps);
    m.elements_formula = fmt::format("{} phi", volumes);
    m.elements_nominal = volumes * static_cast<double>(m.phi);
    m.elements_exact = static_cast<std::size_t>(volumes) *
                       (c.stage == 0 ? counts.trainable : counts.padded_trainable);
    if (c.ranks == 1) m.elements_nominal = 0;  // nobody to send to
    if (c.ranks == 1) m.elements_exact = 0;

    const suites::RankEvidence& rank = evidence.segments.front().by_rank.front();
    std::size_t steps = 0;
    for (const suites::Snapshot& snapshot : rank.snapshots) {
        if (snapshot.action < 0 || snapshot.kind != suites::ActionKind::step) continue;
        ++steps;
        m.bytes_seen = 0;
        for (const std::size_t live : snapshot.live_bytes) m.bytes_seen += live;
    }
    std::size_t elements = 0;
    std::size_t sent_times_ranks = 0;
    for (const collectives::CollectiveRecord& record : rank.collectives) {
        using memory::Phase;
        const bool training = record.phase == Phase::forward || record.phase == Phase::backward ||
                              record.phase == Phase::step;
        if (!training || record.traffic == collectives::Traffic::control) continue;
        elements += collectives::nominal_elements(record);
        sent_times_ranks += collectives::sent_elements_times_ranks(record);
    }
    if (steps == 0) return m;
    m.elements_seen = elements / steps;
    m.elements_sent = static_cast<double>(sent_times_ranks) / c.ranks / static_cast<double>(steps);
    return m;
}

}  // namespace zeroproof::harness
