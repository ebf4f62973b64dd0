// A transformer that predicts the next token, GPT-2-like or Llama-like.
#pragma once

#include <memory>
#include <optional>

#include "reference/models/transformer_block.h"
#include "reference/zero_r/activation_checkpoints.h"

namespace zeroproof::reference {

struct TransformerOptions {
    std::size_t samples = 1;  // of a micro-step
    std::uint64_t seed = 1;   // of weights and dropout; the same on all ranks
    // Blocks between two activation checkpoints; 0 keeps all activations.
    std::size_t blocks_per_checkpoint = 0;
    CheckpointPlacement checkpoints{};
    collectives::Communicator* tensor_parallel = nullptr;  // over which weights are cut, or null
};

// What the training loop tells a transformer, whatever the type of its weights.
class LanguageModel : public Model {
  public:
    // What the next passes are of: samples * sequence tokens, and for each the one that follows it.
    // Samples are numbered over the whole run, whichever rank they are on; these are `first_sample`
    // and the next ones. Throws std::invalid_argument for another number of tokens.
    virtual void set_batch(std::span<const std::int32_t> tokens,
                           std::span<const std::int32_t> targets, std::uint64_t first_sample) = 0;
    // Mean negative log likelihood, of the last forward pass.
    virtual double loss() const = 0;

    // What flows from one unit to the next; empty between passes.
    virtual ConstTensor stream() const = 0;
    virtual ActivationCheckpoints& checkpoints() = 0;
    // By place in parameters(): whether it is a matrix, which weight decay is for.
    virtual bool is_matrix(std::size_t parameter) const = 0;
};

// Units: the embedding, each block, the head with the loss. T is the type of weights, gradients and
// activations: float, Half or BFloat16, or in tests double.
template <typename T>
class Transformer : public LanguageModel {
  public:
    // All activations are in `space`. Throws Unsupported where sizes do not divide.
    Transformer(const TransformerShape& shape, const TransformerOptions& options,
                memory::Space& space);

    const std::vector<Parameter>& parameters() const override { return parameters_; }
    const std::vector<Unit>& units() const override { return units_; }
    void initial_weights(std::size_t parameter, std::size_t begin,
                         std::span<float> values) const override;
    std::span<const Segment> recomputed() const override { return segments_; }

    void set_batch(std::span<const std::int32_t> tokens, std::span<const std::int32_t> targets,
                   std::uint64_t first_sample) override;
    void restore(std::size_t segment) override;
    void forward(std::size_t unit, std::span<const ConstTensor> weights, Pass pass) override;
    void backward(std::size_t unit, std::span<const ConstTensor> weights,
                  std::span<const Tensor> gradients, float loss_scale) override;

    double loss() const override { return loss_; }
    ConstTensor stream() const override;
    ActivationCheckpoints& checkpoints() override { return *checkpoints_; }
    bool is_matrix(std::size_t parameter) const override {
        return descriptions_[parameter].is_matrix();
    }

  private:
    // What the head leaves for its backward pass.
    struct HeadActivations {
        memory::Buffer input;
        memory::Buffer statistics;
        memory::Buffer normalized;
    };

    std::span<const std::int32_t> tokens() const;
    std::span<const std::int32_t> targets() const;
    std::vector<Dropout> dropout_at(DropoutSite site, std::size_t layer) const;
    BlockDropout block_dropout(std::size_t layer) const;
    Matrix<T> as_stream(memory::Buffer& buffer) const;

    void embedding_forward(std::span<const ConstTensor> weights, Pass pass);
    void embedding_backward(std::span<const Tensor> gradients);
    void block_forward_of(std::size_t layer, std::span<const ConstTensor> weights, Pass pass);
    void head_forward(std::span<const ConstTensor> weights, Pass pass);
    void head_backward(std::span<const ConstTensor> weights, std::span<const Tensor> gradients,
                       float loss_scale);
    std::optional<std::size_t> segment_of(std::size_t unit) const;

    TransformerShape shape_;
    TransformerOptions options_;
    BlockSetup setup_;
    std::vector<TransformerParameter> descriptions_;
    std::vector<Parameter> parameters_;
    std::vector<Unit> units_;
    std::vector<Segment> segments_;
    std::unique_ptr<ActivationCheckpoints> checkpoints_;

    memory::Buffer batch_;  // tokens, then targets
    std::uint64_t first_sample_ = 0;
    bool drops_ = false;  // whether the current pass does
    memory::Buffer stream_;
    memory::Buffer stream_gradient_;
    std::vector<BlockActivations> blocks_;
    HeadActivations head_;
    double loss_ = 0;
};

// The model with weights of that type.
std::unique_ptr<LanguageModel> make_transformer(DType type, const TransformerShape& shape,
                                                const TransformerOptions& options,
                                                memory::Space& space);

}  // namespace zeroproof::reference
