#include "reference/models/transformer.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "reference/layers/cross_entropy.h"
#include "reference/layers/elementwise.h"
#include "reference/layers/embedding.h"
#include "reference/options.h"

namespace zeroproof::reference {

namespace {

using memory::Buffer;
using memory::Category;

ShardPlace place_in(const collectives::Communicator* group) {
    if (group == nullptr) return {};
    return {static_cast<std::size_t>(group->rank()), static_cast<std::size_t>(group->size())};
}

template <typename Element, typename AnyTensor>
std::span<Element> as_row(const AnyTensor& tensor) {
    return {reinterpret_cast<Element*>(tensor.data), tensor.elements};
}
template <typename Element, typename AnyTensor>
Matrix<Element> as_table(const AnyTensor& tensor, std::size_t columns) {
    return {reinterpret_cast<Element*>(tensor.data), tensor.elements / columns, columns};
}

// Checked before any member is made.
const TransformerShape& checked(const TransformerShape& shape, const TransformerOptions& options) {
    check(shape, place_in(options.tensor_parallel).ranks);
    if (options.samples == 0) throw Unsupported("a micro-step of no samples");
    return shape;
}

}  // namespace

template <typename T>
Transformer<T>::Transformer(const TransformerShape& shape, const TransformerOptions& options,
                            memory::Space& space)
    : shape_(checked(shape, options)),
      options_(options),
      setup_{shape_, place_in(options.tensor_parallel), options.samples, options.tensor_parallel,
             space},
      blocks_(shape.layers) {
    for (TransformerUnit& unit : transformer_units(shape_, setup_.place)) {
        Unit& named = units_.emplace_back(Unit{unit.name, {}});
        for (TransformerParameter& parameter : unit.parameters) {
            named.parameters.push_back(parameters_.size());
            // Weight decay is for matrices: group 0; what is added or scales is in group 1.
            parameters_.push_back({.name = parameter.name,
                                   .elements = parameter.local_rows() * parameter.local_columns(),
                                   .group = parameter.is_matrix() ? 0 : 1,
                                   .trainable = true,
                                   .is_shard = parameter.is_shard()});
            descriptions_.push_back(std::move(parameter));
        }
        if (unit.reuses_embedding) named.parameters.push_back(0);
    }
    if (options.blocks_per_checkpoint > 0)
        for (std::size_t first = 0; first < shape.layers; first += options.blocks_per_checkpoint)
            segments_.push_back(
                {1 + first, 1 + std::min(first + options.blocks_per_checkpoint, shape.layers)});
    checkpoints_ = std::make_unique<ActivationCheckpoints>(
        segments_.size(), setup_.hidden_elements(), dtype_of<T>(), space, options.checkpoints);
}

template <typename T>
void Transformer<T>::initial_weights(std::size_t parameter, std::size_t begin,
                                     std::span<float> values) const {
    fill_start(descriptions_[parameter], static_cast<std::uint32_t>(parameter), options_.seed,
               begin, values);
}

template <typename T>
void Transformer<T>::set_batch(std::span<const std::int32_t> tokens,
                               std::span<const std::int32_t> targets, std::uint64_t first_sample) {
    if (tokens.size() != setup_.tokens() || targets.size() != setup_.tokens())
        throw std::invalid_argument(fmt::format("{} tokens and {} targets: a micro-step has {}",
                                                tokens.size(), targets.size(), setup_.tokens()));
    batch_ = {};
    batch_ = {setup_.space, Category::activation, DType::int32, 2 * tokens.size()};
    auto* to = reinterpret_cast<std::int32_t*>(batch_.data());
    std::ranges::copy(targets, std::ranges::copy(tokens, to).out);
    first_sample_ = first_sample;
}

template <typename T>
void Transformer<T>::restore(std::size_t segment) {
    stream_ = checkpoints_->take(segment);
    if (segment > 0) checkpoints_->prefetch(segment - 1);
}

template <typename T>
void Transformer<T>::forward(std::size_t unit, std::span<const ConstTensor> weights, Pass pass) {
    drops_ = pass != Pass::evaluate && shape_.dropout > 0;
    if (unit == 0)
        embedding_forward(weights, pass);
    else if (unit <= shape_.layers)
        block_forward_of(unit - 1, weights, pass);
    else
        head_forward(weights, pass);
}

template <typename T>
void Transformer<T>::backward(std::size_t unit, std::span<const ConstTensor> weights,
                              std::span<const Tensor> gradients, float loss_scale) {
    drops_ = shape_.dropout > 0;
    if (unit > shape_.layers) return head_backward(weights, gradients, loss_scale);
    if (unit == 0) return embedding_backward(gradients);
    block_backward<T>(setup_, block_dropout(unit - 1), weights,
                      std::exchange(blocks_[unit - 1], {}), as_stream(stream_gradient_), gradients);
}

template <typename T>
ConstTensor Transformer<T>::stream() const {
    return {dtype_of<T>(), stream_.data(), std::min(stream_.elements(), setup_.hidden_elements())};
}

template <typename T>
void Transformer<T>::embedding_forward(std::span<const ConstTensor> weights, Pass) {
    stream_ = {setup_.space, Category::activation, dtype_of<T>(), setup_.hidden_elements()};
    const auto positions =
        shape_.is_gpt2() ? as_table<const T>(weights[1], shape_.hidden) : Matrix<const T>();
    embed<T>(tokens(), as_table<const T>(weights[0], shape_.hidden), positions, as_stream(stream_));
    if (drops_)
        bias_dropout_residual<T>({}, dropout_at(DropoutSite::embedding, 0), shape_.sequence, {},
                                 as_stream(stream_));
}

template <typename T>
void Transformer<T>::embedding_backward(std::span<const Tensor> gradients) {
    const auto gradient = as_stream(stream_gradient_);
    if (drops_)
        dropout_backward<T>(dropout_at(DropoutSite::embedding, 0), shape_.sequence, gradient,
                            gradient);
    embed_backward<T>(tokens(), gradient, as_table<T>(gradients[0], shape_.hidden),
                      shape_.is_gpt2() ? as_table<T>(gradients[1], shape_.hidden) : Matrix<T>(),
                      setup_.space);
    stream_gradient_ = {};
    batch_ = {};
}

template <typename T>
void Transformer<T>::block_forward_of(std::size_t layer, std::span<const ConstTensor> weights,
                                      Pass pass) {
    const std::optional<std::size_t> segment = segment_of(1 + layer);
    if (pass == Pass::train && segment && segments_[*segment].begin == 1 + layer)
        checkpoints_->put(*segment, stream());
    // The output of a segment's last block is not needed again. Over a tensor-parallel group it is
    // computed all the same, as Megatron-LM does: the paper's 12 b s h elements a block (section 8)
    // count its all-reduce.
    const bool is_last_again = pass == Pass::recompute && segments_[*segment].end == 2 + layer;
    const BlockOutput output = is_last_again && setup_.tensor_parallel == nullptr
                                   ? BlockOutput::not_wanted
                                   : BlockOutput::wanted;
    BlockActivations activations;
    stream_ = block_forward<T>(setup_, block_dropout(layer), weights, std::move(stream_), output,
                               activations);
    if (is_last_again) stream_ = {};
    const bool keeps = pass == Pass::recompute || (pass == Pass::train && !segment);
    if (keeps) blocks_[layer] = std::move(activations);
}

template <typename T>
void Transformer<T>::head_forward(std::span<const ConstTensor> weights, Pass pass) {
    const std::size_t n = setup_.tokens();
    const std::size_t h = shape_.hidden;
    const bool has_bias = shape_.is_gpt2();
    checkpoints_->settle();
    HeadActivations activations;
    activations.input = std::move(stream_);
    activations.statistics = {setup_.space, Category::activation, dtype_of<Compute<T>>(), 2 * n};
    activations.normalized = {setup_.space, Category::activation, dtype_of<T>(), n * h};
    normalize<T>(
        shape_.normalization(), as_matrix<T>(activations.input, n, h), as_row<const T>(weights[0]),
        has_bias ? as_row<const T>(weights[1]) : std::span<const T>(),
        static_cast<Compute<T>>(shape_.norm_epsilon), as_matrix<T>(activations.normalized, n, h),
        as_matrix<Compute<T>>(activations.statistics, n, 2));
    loss_ = cross_entropy<T>(as_matrix<T>(activations.normalized, n, h),
                             as_table<const T>(weights.back(), h), targets(), setup_.space);
    if (pass == Pass::evaluate)
        batch_ = {};
    else
        head_ = std::move(activations);
}

template <typename T>
void Transformer<T>::head_backward(std::span<const ConstTensor> weights,
                                   std::span<const Tensor> gradients, float loss_scale) {
    const std::size_t n = setup_.tokens();
    const std::size_t h = shape_.hidden;
    const bool has_bias = shape_.is_gpt2();
    HeadActivations kept = std::exchange(head_, {});
    Buffer of_normalized(setup_.space, Category::activation, dtype_of<T>(), n * h);
    const auto d_normalized = as_matrix<T>(of_normalized, n, h);
    cross_entropy_backward<T>(as_matrix<T>(kept.normalized, n, h),
                              as_table<const T>(weights.back(), h), targets(),
                              static_cast<Compute<T>>(loss_scale), d_normalized,
                              as_table<T>(gradients.back(), h), setup_.space);
    kept.normalized = {};
    stream_gradient_ = {setup_.space, Category::activation, dtype_of<T>(), n * h};
    stream_gradient_.fill_zero();
    normalize_backward<T>(shape_.normalization(), as_matrix<T>(kept.input, n, h),
                          as_row<const T>(weights[0]), as_matrix<Compute<T>>(kept.statistics, n, 2),
                          d_normalized, as_stream(stream_gradient_), as_row<T>(gradients[0]),
                          has_bias ? as_row<T>(gradients[1]) : std::span<T>(), setup_.space);
}

template <typename T>
std::span<const std::int32_t> Transformer<T>::tokens() const {
    if (batch_.empty()) throw std::logic_error("a pass without a batch");
    return {reinterpret_cast<const std::int32_t*>(batch_.data()), setup_.tokens()};
}

template <typename T>
std::span<const std::int32_t> Transformer<T>::targets() const {
    return {tokens().data() + setup_.tokens(), setup_.tokens()};
}

template <typename T>
std::vector<Dropout> Transformer<T>::dropout_at(DropoutSite site, std::size_t layer) const {
    std::vector<Dropout> of_samples;
    for (std::size_t sample = 0; drops_ && sample < setup_.samples; ++sample)
        of_samples.push_back({shape_.dropout, options_.seed, first_sample_ + sample,
                              static_cast<std::uint32_t>(layer), site});
    return of_samples;
}

template <typename T>
BlockDropout Transformer<T>::block_dropout(std::size_t layer) const {
    return {dropout_at(DropoutSite::probabilities, layer),
            dropout_at(DropoutSite::attention, layer),
            dropout_at(DropoutSite::feed_forward, layer)};
}

template <typename T>
Matrix<T> Transformer<T>::as_stream(Buffer& buffer) const {
    return as_matrix<T>(buffer, setup_.tokens(), shape_.hidden);
}

template <typename T>
std::optional<std::size_t> Transformer<T>::segment_of(std::size_t unit) const {
    for (std::size_t s = 0; s < segments_.size(); ++s)
        if (segments_[s].begin <= unit && unit < segments_[s].end) return s;
    return std::nullopt;
}

std::unique_ptr<LanguageModel> make_transformer(DType type, const TransformerShape& shape,
                                                const TransformerOptions& options,
                                                memory::Space& space) {
    switch (type) {
        case DType::fp32: return std::make_unique<Transformer<float>>(shape, options, space);
        case DType::fp16: return std::make_unique<Transformer<Half>>(shape, options, space);
        case DType::bf16: return std::make_unique<Transformer<BFloat16>>(shape, options, space);
        default: throw Unsupported("a transformer has weights of fp32, fp16 or bf16");
    }
}

template class Transformer<float>;
template class Transformer<double>;
template class Transformer<Half>;
template class Transformer<BFloat16>;

}  // namespace zeroproof::reference
