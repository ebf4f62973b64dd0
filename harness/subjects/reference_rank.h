// One rank of the reference, driven through a part of a case's program.
#pragma once

#include <memory>

#include "collectives/metered.h"
#include "harness/subjects/allocation_recorder.h"
#include "harness/subjects/observed_transformer.h"
#include "harness/subjects/program_part.h"
#include "memory/space.h"
#include "reference/models/echo.h"
#include "reference/trainer.h"
#include "suites/conformance/evidence.h"
#include "suites/conformance/gradients.h"

namespace zeroproof::harness {

class ReferenceRank {
  public:
    // `rank` is of the data-parallel ranks, `peer` of the tensor-parallel group.
    ReferenceRank(const suites::Case& c, const ProgramPart& part, int rank, int peer = 0);

    // In the thread of the rank. The ranks of a tensor-parallel group are neighbours in `world`.
    void run(collectives::Communicator& world);
    // Afterwards, in any.
    suites::RankEvidence take_evidence();

  private:
    // Gradients and initial weights of the case, as the model asks for them.
    class Terms : public reference::LinearTerms {
      public:
        explicit Terms(const ReferenceRank& owner) : owner_(owner) {}
        void initial_weights(std::size_t parameter, std::size_t begin,
                             std::span<float> values) const override;
        bool terms(std::size_t unit, std::size_t parameter, std::span<float> g) const override;

      private:
        const ReferenceRank& owner_;
    };
    // The case's model, each unit of which tells its rank when it computes.
    template <typename BaseModel>
    class Observed : public BaseModel {
      public:
        Observed(const suites::Case& c, ReferenceRank& owner);
        void forward(std::size_t unit, std::span<const reference::ConstTensor> weights,
                     reference::Pass pass) override;
        void backward(std::size_t unit, std::span<const reference::ConstTensor> weights,
                      std::span<const reference::Tensor> gradients, float loss_scale) override;

      private:
        ReferenceRank& owner_;
    };

    std::unique_ptr<collectives::Communicator> channel(collectives::Communicator& group,
                                                       collectives::Traffic traffic);
    void make_model(collectives::Communicator* activations, collectives::Communicator* checkpoints);
    void micro_step(reference::Trainer& trainer);
    // What is in flight while a unit computes.
    void note_in_flight(bool backward, std::size_t unit);
    void act(const suites::Action& action, reference::Trainer& trainer);
    void enter(memory::Phase phase) { space_.ledger().enter(phase); }
    void take_echoes(bool backward);
    suites::Snapshot& take_snapshot(suites::ActionKind kind, reference::Stage& stage);
    void note_gradients(suites::Snapshot& snapshot, reference::Stage& stage, float divisor);

    const suites::Case& case_;
    ProgramPart part_;
    int rank_;
    suites::Gradients gradients_;
    Terms terms_;
    memory::Space space_;
    memory::Space host_;
    AllocationRecorder allocations_;
    std::unique_ptr<reference::Model> model_;
    reference::EchoModel* echo_ = nullptr;        // the model, if it is one
    ObservedTransformer* transformer_ = nullptr;  // likewise
    collectives::Meter meter_;
    suites::RankEvidence evidence_;
    int action_ = -1;
    std::size_t micro_step_ = 0;  // counted from the start of the program
};

}  // namespace zeroproof::harness
