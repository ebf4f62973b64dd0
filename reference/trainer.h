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
    // Throws std::logic_error in the middle of a window. Without any micro-step the gradient is
    // zero.
    StepOutcome step();
    // Discards what the window has accumulated: the next backward is its first again.
    void zero_grad();
    // Between the last micro-step of a window and its step: edits of the reduced gradient.
    void clip(double bound);  // multiplies by min(1, bound / norm), if all of it is finite
    void scale_gradient(std::size_t parameter, float factor);
    // Between two windows.
    void scale_weight(std::size_t parameter, float factor);
    void set_learning_rate(std::size_t group, float learning_rate);
    // A forward pass between any two calls; changes nothing.
    void evaluate();

    // One file per rank into an existing folder, between two windows. Loading needs the same
    // parameters, but neither the same stage nor the same number of ranks.
    void save(const std::filesystem::path& folder);
    void load(const std::filesystem::path& folder);

    Stage& stage() { return *stage_; }

  private:
    void forward(Pass pass);
    // Computes the activations of a segment again, and leaves the weights of its last unit
    // gathered.
    void recompute(std::size_t segment);
    // Throws std::logic_error unless all micro-steps of the window are done.
    void require_whole_window(const char* what) const;
    void require_no_window(const char* what) const;

    Model& model_;
    Options options_;
    memory::Space& space_;
    std::unique_ptr<Stage> stage_;
    int micro_step_ = 0;  // of the window, done so far
};

}  // namespace zeroproof::reference
