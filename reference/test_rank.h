// One rank of a small training run, for the tests of checkpoints.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "collectives/communicator.h"
#include "reference/models/dot.h"
#include "reference/trainer.h"

namespace zeroproof::reference {

// Every rank has the same gradient, so that a run is the same for each number of ranks.
class SameTerms : public LinearTerms {
  public:
    void initial_weights(std::size_t parameter, std::size_t begin,
                         std::span<float> values) const override {
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<float>(100 * parameter + begin + i);
    }
    bool terms(std::size_t, std::size_t, std::span<float> g) const override {
        for (std::size_t i = 0; i < g.size(); ++i) g[i] = static_cast<float>(i + 1);
        return true;
    }
};

inline const std::vector<Parameter> kTestParameters{{"a", 7}, {"b", 10}, {"frozen", 3, -1, false}};

// In buckets of 4 elements, so that each parameter is saved in several pieces. Neighbours among the
// ranks are those of a tensor-parallel group, if it is of more than one.
class TestRank {
  public:
    explicit TestRank(collectives::Communicator& world, int stage = 2,
                      const std::vector<Parameter>& parameters = kTestParameters,
                      int tensor_parallel = 1)
        : model_(parameters, {{"unit", {0, 1, 2}}}, terms_),
          gradients_(world.split(world.rank() % tensor_parallel, world.rank())),
          parameters_(world.split(world.rank() % tensor_parallel, world.rank())),
          control_(world.split(world.rank() % tensor_parallel, world.rank())),
          tensor_parallel_(world.split(world.rank() / tensor_parallel, world.rank())),
          trainer_(model_, options(stage),
                   {*gradients_, *parameters_, *control_,
                    tensor_parallel > 1 ? tensor_parallel_.get() : nullptr},
                   space_) {}

    const Model& model() const { return model_; }
    Trainer& trainer() { return trainer_; }
    void steps(int count) {
        for (int i = 0; i < count; ++i) {
            trainer_.forward();
            trainer_.backward();
            trainer_.step();
        }
    }
    // Everything that a checkpoint restores, of this rank. Collective.
    std::vector<float> state() {
        Stage& stage = trainer_.stage();
        std::vector<float> all{static_cast<float>(stage.progress().steps_taken)};
        const auto append = [&](std::span<const float> values) {
            all.insert(all.end(), values.begin(), values.end());
        };
        for (const Slice& slice : stage.owned()) {
            append(stage.master(slice));
            append(stage.momentum(slice));
            append(stage.variance(slice));
        }
        append(weights());
        return all;
    }
    std::vector<float> weights() {
        std::vector<float> all;
        for (std::size_t p = 0; p < model_.parameters().size(); ++p) {
            std::vector<float> values(model_.parameters()[p].elements);
            trainer_.stage().read_weights(p, values);
            all.insert(all.end(), values.begin(), values.end());
        }
        return all;
    }

  private:
    static Options options(int stage) {
        Options options;
        options.stage = stage;
        options.precision = Precision::bf16;
        options.groups.emplace_back();
        options.bucket_elements = 4;
        return options;
    }

    SameTerms terms_;
    DotModel model_;
    memory::Space space_{"device", memory::Space::kUnlimited, memory::Returned::reused};
    std::unique_ptr<collectives::Communicator> gradients_;
    std::unique_ptr<collectives::Communicator> parameters_;
    std::unique_ptr<collectives::Communicator> control_;
    std::unique_ptr<collectives::Communicator> tensor_parallel_;
    Trainer trainer_;
};

}  // namespace zeroproof::reference
