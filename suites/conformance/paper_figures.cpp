#include "suites/conformance/paper_figures.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "memory/formulas.h"
#include "suites/conformance/partition_model.h"
#include "suites/conformance/transformer_plan.h"

namespace zeroproof::suites {

namespace {

using collectives::Traffic;
using memory::Category;
using memory::Phase;

// Volumes by place; what is zero is left out.
class Volumes {
  public:
    void add(int action, Phase phase, Traffic traffic, Gathered volume) {
        if (volume.operations > 0) volumes_[{action, phase, traffic}] = volume;
    }
    std::vector<PaperVolume> list() const {
        std::vector<PaperVolume> all;
        for (const auto& [place, volume] : volumes_) {
            const auto& [action, phase, traffic] = place;
            all.push_back({action, phase, traffic, volume.elements, volume.operations});
        }
        return all;
    }

  private:
    std::map<std::tuple<int, Phase, Traffic>, Gathered> volumes_;
};

}  // namespace

std::vector<PaperVolume> paper_volumes(const Case& c, bool behind_reload,
                                       const std::vector<Expected>& expected) {
    const int stage = behind_reload && c.resume_stage >= 0 ? c.resume_stage : c.stage;
    const int ranks = behind_reload && c.resume_ranks > 0 ? c.resume_ranks : c.ranks;
    const std::vector<PartitionedSet> sets = partitioned_sets(c, stage, ranks);
    Gathered reduced;
    Gathered published;  // stages 1 and 2 gather what they have stepped
    for (const PartitionedSet& set : sets) {
        if (set.trainable) {
            reduced.elements += set.padded * (stage == 0 ? 2 : 1);
            reduced.operations += set.buckets;
        }
        published.elements += set.padded;
        published.operations += set.buckets;
    }
    const Gathered pass = stage == 3 ? gathered_in_pass(c, sets) : Gathered{};
    Gathered backward = pass;
    if (stage == 3) {
        const Gathered again = gathered_again(c, sets);
        backward.elements += again.elements;
        backward.operations += again.operations;
    }

    Volumes volumes;
    bool is_behind = false;
    int micro_steps = 0;
    for (int a = 0; a < static_cast<int>(c.program.size()); ++a) {
        const ActionKind kind = c.program[static_cast<std::size_t>(a)].kind;
        is_behind = is_behind || kind == ActionKind::reload;
        if (kind == ActionKind::micro_step) ++micro_steps;
        if (kind == ActionKind::step || kind == ActionKind::zero_grad) micro_steps = 0;
        if (is_behind != behind_reload) continue;
        switch (kind) {
            case ActionKind::micro_step:
                volumes.add(a, Phase::forward, Traffic::parameter, pass);
                volumes.add(a, Phase::backward, Traffic::parameter, backward);
                // Stages 2 and 3 keep no whole gradient in which micro-steps could add up.
                if (stage >= 2 || micro_steps == c.micro_steps)
                    volumes.add(a, Phase::backward, Traffic::gradient, reduced);
                break;
            case ActionKind::evaluate:
                volumes.add(a, Phase::evaluate, Traffic::parameter, pass);
                break;
            case ActionKind::step: {
                const auto after = std::ranges::find(expected, a, &Expected::action);
                const bool is_taken = after != expected.end() && !after->skipped;
                if ((stage == 1 || stage == 2) && is_taken)
                    volumes.add(a, Phase::step, Traffic::parameter, published);
                break;
            }
            default: break;
        }
    }
    return volumes.list();
}

memory::BytesByCategory paper_bytes_at_rest(const Case& c, int stage, int ranks) {
    const memory::StateBytes each = memory::state_bytes(weight_type(c.precision));
    const memory::ModelStates states =
        memory::exact_model_state_bytes(stage, each, counts_of(c, stage, ranks), ranks);
    memory::BytesByCategory bytes{};
    const auto at = [&](Category category) -> std::size_t& {
        return bytes[static_cast<std::size_t>(category)];
    };
    at(Category::parameter) = states.weight;
    at(Category::gradient) = states.gradient;
    // The optimizer's are fp32 numbers: momentum, variance and, in mixed precision, the master.
    const std::size_t numbers = each.optimizer / sizeof(float);
    at(Category::momentum) = states.optimizer / numbers;
    at(Category::variance) = states.optimizer / numbers;
    at(Category::master) = numbers == 3 ? states.optimizer / numbers : 0;
    // ZeRO-R's MD takes the room of all checkpoints once.
    if (c.transformer && c.transformer->contiguous_checkpoints &&
        !c.transformer->offload_checkpoints)
        at(Category::checkpoint) = recomputed_segments(c).size() * checkpoint_bytes(c);
    return bytes;
}

}  // namespace zeroproof::suites
