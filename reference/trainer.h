// The training loop, the same for every stage.
#pragma once

#include <filesystem>
#include <memory>

#include "reference/stage.h"

namespace zeroproof::reference {

// One rank of a training run. All calls are collective: every rank makes the same ones in the same
// order. A window is `Options::micro_steps` times forward and backward, then a step.
class Trainer {
  public:
    // Throws Unsupported before anything is allocated or sent.
    Trainer(Model& model, const Options& options, Channels channels, memory::Space& space);
    // The stage refers to this trainer's options, so a trainer stays where it was made.
    Trainer(const Trainer&) = delete;
    Trainer& operator=(const Trainer&) = delete;

    void forward();
    // The gradient of the micro-step, accumulated. The first of a window starts from zero.
    void backward();
    // Throws std::logic_error in the middle of a window.
    StepOutcome step();
    // Discards what the window has accumulated: the next backward is its first again.
    void zero_grad();
    // A forward pass between any two calls; changes nothing.
    void evaluate();

    // One file per rank into an existing folder, between two windows. Loading needs the same
    // parameters, but neither the same stage nor the same number of ranks.
    void save(const std::filesystem::path& folder);
    void load(const std::filesystem::path& folder);

    Stage& stage() { return *stage_; }

  private:
    Model& model_;
    Options options_;
    memory::Space& space_;
    std::unique_ptr<Stage> stage_;
    int micro_step_ = 0;  // of the window, done so far
};

}  // namespace zeroproof::reference
