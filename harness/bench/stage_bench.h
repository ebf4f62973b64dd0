// Times whole ZeRO steps, and holds what they send against the formulas.
#pragma once

#include <map>

#include "collectives/record.h"
#include "harness/bench/bench_options.h"
#include "harness/bench/team.h"

namespace zeroproof::harness {

struct StagePlan {
    int stage = 0;
    std::string algorithm;  // native, or one of collectives::algorithm_sets()
    memory::DType type = memory::DType::fp32;
    std::uint64_t parameters = 0;  // Phi
    int units = 8;
    int micro_steps = 1;
    std::uint64_t bucket_elements = 1 << 20;
    double compute_seconds = 0;
    bool overlap = true;
};

// What a step sends of gradients and parameters, and what it was.
struct StageRun {
    StageResult result;
    // Of one step of this rank: of each kind of operation, how many of which bytes. Of the logical
    // tensor.
    std::map<std::pair<std::string, std::uint64_t>, std::uint64_t> operations;
};

// Steps of the reference on a model of Phi parameters in equal units, whose gradients are known and
// cost next to nothing: what is left is communication, and the compute time that is asked for, in
// which the rank sleeps, a third in forward and two thirds in backward. Collective; the result is
// the same on every rank.
//
// One step that is not timed shows that the reduced gradients are exact and that elements by
// traffic, op and phase equal the formulas: throws WrongResult on every rank if they do not.
StageRun time_stage(Team& team, const StagePlan& plan, const collectives::Topology& topology,
                    const Measuring& measuring);

// Elements of one rank that the formulas give, by traffic, op and phase: a rank's nominal ones, 2
// Phi in all for plain data parallelism and one micro-step (ZeRO paper, section 7). Padding
// counted: partitions round up to a multiple of the ranks, in stage 3 for each unit.
std::vector<VolumeRow> stage_volumes(const StagePlan& plan, int ranks);

// "(1 + G) Phi"
std::string stage_formula(int stage, int micro_steps);

}  // namespace zeroproof::harness
