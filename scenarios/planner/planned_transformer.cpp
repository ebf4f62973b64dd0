#include "scenarios/planner/planned_transformer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace zeroproof::scenarios {

using memory::Category;

namespace {

// Rows of scores, and of logits, that the reference computes at a time.
constexpr std::size_t kAttentionTile = 128;
constexpr std::size_t kLogitTile = 256;
constexpr std::size_t kComputedWidth = 4;  // fp32

}  // namespace

PlannedModel planned_model(const TransformerModel& m, std::size_t tensor_parallel) {
    PlannedModel planned;
    using Shape = std::vector<std::size_t>;
    const auto add = [&](std::vector<std::size_t>& unit, std::string name, Shape shape,
                         bool is_shard = false) {
        std::size_t elements = 1;
        for (const std::size_t size : shape) elements *= size;
        unit.push_back(planned.parameters.size());
        planned.parameters.push_back({elements, true, std::move(name), std::move(shape), is_shard});
    };
    const std::size_t t = tensor_parallel;
    const std::size_t h = m.hidden;
    const std::size_t qkv = (m.heads + 2 * m.kv_heads) * m.head_size() / t;
    const std::size_t f = m.feed_forward / t;
    const std::size_t up = m.is_gpt2() ? f : 2 * f;
    const bool biases = m.is_gpt2();
    const bool cut = t > 1;
    const auto normalization = [&](std::vector<std::size_t>& unit, const std::string& name) {
        add(unit, name + ".weight", {h});
        if (biases) add(unit, name + ".bias", {h});
    };
    const auto column_parallel = [&](std::vector<std::size_t>& unit, const std::string& name,
                                     std::size_t outputs) {
        add(unit, name + ".weight", {outputs, h}, cut);
        if (biases) add(unit, name + ".bias", {outputs}, cut);
    };
    const auto row_parallel = [&](std::vector<std::size_t>& unit, const std::string& name,
                                  std::size_t inputs) {
        add(unit, name + ".weight", {h, inputs}, cut);
        if (biases) add(unit, name + ".bias", {h});
    };

    std::vector<std::size_t> embedding;
    add(embedding, "embedding.tokens", {m.vocabulary, h});
    if (m.is_gpt2()) add(embedding, "embedding.positions", {m.sequence, h});
    planned.units.push_back(embedding);
    for (std::size_t layer = 0; layer < m.layers; ++layer) {
        const std::string prefix = fmt::format("block.{}.", layer);
        std::vector<std::size_t> block;
        normalization(block, prefix + "norm1");
        column_parallel(block, prefix + "attention.qkv", qkv);
        row_parallel(block, prefix + "attention.out", m.heads * m.head_size() / t);
        normalization(block, prefix + "norm2");
        column_parallel(block, prefix + "feed_forward.up", up);
        row_parallel(block, prefix + "feed_forward.down", f);
        planned.units.push_back(block);
    }
    std::vector<std::size_t> head;
    normalization(head, "head.norm");
    if (m.is_gpt2())
        head.push_back(0);
    else
        add(head, "head.tokens", {m.vocabulary, h});
    planned.units.push_back(head);
    return planned;
}

std::size_t checkpoint_elements(const TransformerModel& model, const ActivationOptions& options) {
    const std::size_t elements = options.samples * model.sequence * model.hidden;
    const std::size_t parts = options.partition_checkpoints ? options.tensor_parallel : 1;
    return (elements + parts - 1) / parts;
}

std::size_t block_activation_bytes(const TransformerModel& m, const ActivationOptions& options) {
    const std::size_t t = options.tensor_parallel;
    const std::size_t n = options.samples * m.sequence;
    const std::size_t q = m.heads * m.head_size() / t;
    const std::size_t kv = m.kv_heads * m.head_size() / t;
    const std::size_t f = m.feed_forward / t;
    return memory::size_of(options.type) * n *
               (4 * m.hidden + 2 * q + 2 * kv + (m.is_gpt2() ? 2 : 3) * f) +
           kComputedWidth * n * (m.heads / t + 4);
}

PlannedTransformer::PlannedTransformer(const TransformerModel& model,
                                       const ActivationOptions& options, memory::Ledger& device,
                                       memory::Ledger& host)
    : model_(model),
      options_(options),
      device_(device),
      host_(host),
      width_(memory::size_of(options.type)),
      n_(options.samples * model.sequence),
      h_(model.hidden),
      q_(model.heads * model.head_size() / options.tensor_parallel),
      kv_(model.kv_heads * model.head_size() / options.tensor_parallel),
      f_(model.feed_forward / options.tensor_parallel),
      up_(model.is_gpt2() ? f_ : 2 * f_),
      heads_(model.heads / options.tensor_parallel),
      blocks_(model.layers) {
    if (options.blocks_per_checkpoint > 0)
        for (std::size_t first = 0; first < model.layers; first += options.blocks_per_checkpoint)
            segments_.push_back(
                {1 + first, 1 + std::min(first + options.blocks_per_checkpoint, model.layers)});
    checkpoints_.resize(segments_.size());
    if (options.contiguous_checkpoints)
        arena_ = {options.offload_checkpoints ? host_ : device_, Category::checkpoint,
                  segments_.size() * checkpoint_elements(model, options) * width_};
}

void PlannedTransformer::set_batch() {
    batch_ = {device_, Category::activation, 2 * n_ * 4};
}

void PlannedTransformer::forward(std::size_t unit, Pass pass) {
    if (unit == 0)
        stream_ = rows(h_);
    else if (unit <= model_.layers)
        block_forward(unit - 1, pass);
    else
        head_forward();
}

void PlannedTransformer::restore(std::size_t segment) {
    PlannedBytes part;
    if (options_.offload_checkpoints) {
        if (returning_.bytes() == 0) {
            leaving_ = {};
            returning_ = checkpoint_part(device_, Category::buffer);
        }
        part = std::move(returning_);
        returning_ = {};
    }
    const std::size_t parts = options_.partition_checkpoints ? options_.tensor_parallel : 1;
    stream_ = {};
    stream_ = take(checkpoint_elements(model_, options_) * parts);
    checkpoints_[segment] = {};
    part = {};
    if (segment > 0 && options_.offload_checkpoints) {
        leaving_ = {};
        returning_ = checkpoint_part(device_, Category::buffer);
    }
}

void PlannedTransformer::backward(std::size_t unit) {
    if (unit > model_.layers) return head_backward();
    if (unit > 0) return block_backward(unit - 1);
    {
        const PlannedBytes row = computed(h_);
        const PlannedBytes order(device_, Category::activation, n_ * 4);
    }
    stream_gradient_ = {};
    batch_ = {};
}

void PlannedTransformer::block_forward(std::size_t layer, Pass pass) {
    const auto segment = segment_of(1 + layer);
    if (pass == Pass::train && segment && segments_[*segment].begin == 1 + layer) put(*segment);
    const bool is_last_again = pass == Pass::recompute && segments_[*segment].end == 2 + layer;
    Block block;
    block.input = std::move(stream_);
    stream_ = {};
    block.statistics1 = computed(2 * n_);
    block.normalized1 = rows(h_);
    block.qkv = rows(q_ + 2 * kv_);
    block.log_sums = computed(n_ * heads_);
    block.attended = rows(q_);
    { const ScoreTile tile = score_tile(); }
    block.middle = rows(h_);
    block.statistics2 = computed(2 * n_);
    block.normalized2 = rows(h_);
    block.up = rows(up_);
    block.activated = rows(f_);
    if (!is_last_again || options_.tensor_parallel > 1) stream_ = rows(h_);
    if (is_last_again) stream_ = {};
    if (pass == Pass::recompute || !segment) blocks_[layer] = std::move(block);
}

void PlannedTransformer::block_backward(std::size_t layer) {
    Block kept = std::move(blocks_[layer]);
    const PlannedBytes sublayer = rows(h_);
    if (model_.is_gpt2()) bias_backward(h_);
    PlannedBytes of_activated = rows(f_);
    kept.activated = {};
    of_activated = {};
    if (model_.is_gpt2()) bias_backward(up_);
    kept.up = {};
    kept.normalized2 = {};
    normalize_backward();
    kept.statistics2 = {};
    kept.middle = {};

    if (model_.is_gpt2()) bias_backward(h_);
    PlannedBytes of_attended = rows(q_);
    kept.attended = {};
    PlannedBytes of_qkv = rows(q_ + 2 * kv_);
    {
        const ScoreTile probabilities = score_tile();
        const ScoreTile changes = score_tile();
        const PlannedBytes row = computed(model_.sequence);
        const PlannedBytes of_key = computed(model_.sequence * model_.head_size());
        const PlannedBytes of_value = computed(model_.sequence * model_.head_size());
    }
    of_attended = {};
    kept.qkv = {};
    kept.log_sums = {};
    if (model_.is_gpt2()) bias_backward(q_ + 2 * kv_);
    of_qkv = {};
    kept.normalized1 = {};
    normalize_backward();
}

void PlannedTransformer::head_forward() {
    leaving_ = {};
    head_input_ = std::move(stream_);
    stream_ = {};
    head_statistics_ = computed(2 * n_);
    head_normalized_ = rows(h_);
    const PlannedBytes tile = computed(std::min(kLogitTile, n_) * model_.vocabulary);
}

void PlannedTransformer::head_backward() {
    const PlannedBytes of_normalized = rows(h_);
    {
        const std::size_t tile_elements = std::min(kLogitTile, n_) * model_.vocabulary;
        const bool rounded = options_.type != memory::DType::fp32;
        const PlannedBytes tile = computed(tile_elements);
        const PlannedBytes as_multiplied = take(rounded ? tile_elements : 0);
        const PlannedBytes sums = computed(rounded ? model_.vocabulary * h_ : 0);
    }
    head_normalized_ = {};
    stream_gradient_ = rows(h_);
    normalize_backward();
    head_input_ = {};
    head_statistics_ = {};
}

void PlannedTransformer::normalize_backward() {
    const PlannedBytes sums = computed(2 * h_);
}

void PlannedTransformer::bias_backward(std::size_t columns) {
    const PlannedBytes row = computed(columns);
}

PlannedTransformer::ScoreTile PlannedTransformer::score_tile() const {
    const std::size_t elements = std::min(kAttentionTile, model_.sequence) * model_.sequence;
    return {computed(elements), take(options_.type == memory::DType::fp32 ? 0 : elements)};
}

PlannedBytes PlannedTransformer::rows(std::size_t columns) const {
    return take(n_ * columns);
}

PlannedBytes PlannedTransformer::take(std::size_t elements) const {
    return {device_, Category::activation, elements * width_};
}

PlannedBytes PlannedTransformer::computed(std::size_t elements) const {
    return {device_, Category::activation, elements * kComputedWidth};
}

std::optional<std::size_t> PlannedTransformer::segment_of(std::size_t unit) const {
    for (std::size_t s = 0; s < segments_.size(); ++s)
        if (segments_[s].begin <= unit && unit < segments_[s].end) return s;
    return std::nullopt;
}

PlannedBytes PlannedTransformer::checkpoint_part(memory::Ledger& ledger, Category category) const {
    return {ledger, category, checkpoint_elements(model_, options_) * width_};
}

void PlannedTransformer::put(std::size_t segment) {
    if (!options_.contiguous_checkpoints)
        checkpoints_[segment] =
            checkpoint_part(options_.offload_checkpoints ? host_ : device_, Category::checkpoint);
    if (!options_.offload_checkpoints) return;
    leaving_ = {};
    leaving_ = checkpoint_part(device_, Category::buffer);
}

}  // namespace zeroproof::scenarios
