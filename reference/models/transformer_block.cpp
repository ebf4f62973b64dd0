#include "reference/models/transformer_block.h"

#include <utility>

#include "reference/layers/elementwise.h"
#include "reference/tensor_parallel/linear.h"

namespace zeroproof::reference {

namespace {

using memory::Buffer;
using memory::Category;

// The weights of a block, or their gradients, by name. Element: const T, or T.
template <typename Element>
struct BlockTensors {
    std::span<Element> norm1_weight, norm1_bias;
    Matrix<Element> qkv;
    std::span<Element> qkv_bias;
    Matrix<Element> out;
    std::span<Element> out_bias, norm2_weight, norm2_bias;
    Matrix<Element> up;
    std::span<Element> up_bias;
    Matrix<Element> down;
    std::span<Element> down_bias;
};

template <typename Element, typename AnyTensor>
BlockTensors<Element> by_name(const BlockSetup& setup, std::span<const AnyTensor> tensors) {
    std::size_t next = 0;
    const auto row = [&] {
        const AnyTensor& tensor = tensors[next++];
        return std::span(reinterpret_cast<Element*>(tensor.data), tensor.elements);
    };
    const auto matrix = [&](std::size_t columns) {
        const AnyTensor& tensor = tensors[next++];
        return Matrix<Element>(reinterpret_cast<Element*>(tensor.data), tensor.elements / columns,
                               columns);
    };
    const auto bias = [&] { return setup.shape.is_gpt2() ? row() : std::span<Element>(); };
    const std::size_t hidden = setup.shape.hidden;
    BlockTensors<Element> block;
    block.norm1_weight = row();
    block.norm1_bias = bias();
    block.qkv = matrix(hidden);
    block.qkv_bias = bias();
    block.out = matrix(attention_shape(setup.shape, setup.place).query_columns());
    block.out_bias = bias();
    block.norm2_weight = row();
    block.norm2_bias = bias();
    block.up = matrix(hidden);
    block.up_bias = bias();
    block.down = matrix(setup.local_feed_forward());
    block.down_bias = bias();
    return block;
}

template <typename T>
Buffer activation(const BlockSetup& setup, std::size_t columns) {
    return {setup.space, Category::activation, dtype_of<T>(), setup.tokens() * columns};
}

}  // namespace

template <typename T>
Buffer block_forward(const BlockSetup& setup, const BlockDropout& dropout,
                     std::span<const ConstTensor> weights, Buffer input, BlockOutput output,
                     BlockActivations& kept) {
    using C = Compute<T>;
    const TransformerShape& shape = setup.shape;
    const AttentionShape attention = attention_shape(shape, setup.place);
    const BlockTensors<const T> w = by_name<const T>(setup, weights);
    const std::size_t n = setup.tokens();
    const std::size_t h = shape.hidden;
    const std::size_t f = setup.local_feed_forward();
    const auto epsilon = static_cast<C>(shape.norm_epsilon);

    kept.input = std::move(input);
    const auto x = as_matrix<T>(kept.input, n, h);
    kept.statistics1 = activation<C>(setup, 2);
    kept.normalized1 = activation<T>(setup, h);
    const auto normalized1 = as_matrix<T>(kept.normalized1, n, h);
    normalize<T>(shape.normalization(), x, w.norm1_weight, w.norm1_bias, epsilon, normalized1,
                 as_matrix<C>(kept.statistics1, n, 2));

    kept.qkv = activation<T>(setup, attention.qkv_columns());
    const auto qkv = as_matrix<T>(kept.qkv, n, attention.qkv_columns());
    column_parallel<T>(normalized1, w.qkv, qkv);
    add_bias<T>(w.qkv_bias, qkv);
    if (!shape.is_gpt2()) rotate<T>(attention, shape.rotary_base, Rotation::forward, qkv);
    kept.log_sums = activation<C>(setup, attention.heads);
    kept.attended = activation<T>(setup, attention.query_columns());
    const auto attended = as_matrix<T>(kept.attended, n, attention.query_columns());
    attend<T>(attention, qkv, dropout.probabilities, attended,
              as_matrix<C>(kept.log_sums, setup.samples * attention.heads, shape.sequence),
              setup.space);

    kept.middle = activation<T>(setup, h);
    const auto middle = as_matrix<T>(kept.middle, n, h);
    row_parallel<T>(attended, w.out, middle, setup.tensor_parallel);
    bias_dropout_residual<T>(w.out_bias, dropout.attention, shape.sequence, x, middle);

    kept.statistics2 = activation<C>(setup, 2);
    kept.normalized2 = activation<T>(setup, h);
    const auto normalized2 = as_matrix<T>(kept.normalized2, n, h);
    normalize<T>(shape.normalization(), middle, w.norm2_weight, w.norm2_bias, epsilon, normalized2,
                 as_matrix<C>(kept.statistics2, n, 2));

    const std::size_t up_columns = columns_in(shape.nonlinearity()) * f;
    kept.up = activation<T>(setup, up_columns);
    const auto up = as_matrix<T>(kept.up, n, up_columns);
    column_parallel<T>(normalized2, w.up, up);
    add_bias<T>(w.up_bias, up);
    kept.activated = activation<T>(setup, f);
    const auto activated = as_matrix<T>(kept.activated, n, f);
    activate<T>(shape.nonlinearity(), up, activated);
    if (output == BlockOutput::not_wanted) return {};

    Buffer result = activation<T>(setup, h);
    const auto y = as_matrix<T>(result, n, h);
    row_parallel<T>(activated, w.down, y, setup.tensor_parallel);
    bias_dropout_residual<T>(w.down_bias, dropout.feed_forward, shape.sequence, middle, y);
    return result;
}

template <typename T>
void block_backward(const BlockSetup& setup, const BlockDropout& dropout,
                    std::span<const ConstTensor> weights, BlockActivations kept,
                    Matrix<T> stream_gradient, std::span<const Tensor> weight_gradients) {
    using C = Compute<T>;
    const TransformerShape& shape = setup.shape;
    const AttentionShape attention = attention_shape(shape, setup.place);
    const BlockTensors<const T> w = by_name<const T>(setup, weights);
    const BlockTensors<T> dw = by_name<T>(setup, weight_gradients);
    memory::Space& space = setup.space;
    const std::size_t n = setup.tokens();
    const std::size_t h = shape.hidden;
    const std::size_t f = setup.local_feed_forward();
    const std::size_t up_columns = columns_in(shape.nonlinearity()) * f;

    // The gradient of what a sublayer adds to the stream, and then of what it was made from.
    Buffer sublayer = activation<T>(setup, h);
    const auto d_sublayer = as_matrix<T>(sublayer, n, h);

    // --- feed-forward ---
    dropout_backward<T>(dropout.feed_forward, shape.sequence, stream_gradient, d_sublayer);
    bias_backward<T>(d_sublayer, dw.down_bias, space);
    Buffer of_activated = activation<T>(setup, f);
    row_parallel_backward<T>(as_matrix<T>(kept.activated, n, f), w.down, d_sublayer,
                             as_matrix<T>(of_activated, n, f), dw.down);
    kept.activated = {};
    const auto d_up = as_matrix<T>(kept.up, n, up_columns);
    activate_backward<T>(shape.nonlinearity(), d_up, as_matrix<T>(of_activated, n, f));
    of_activated = {};
    bias_backward<T>(d_up, dw.up_bias, space);
    column_parallel_backward<T>(as_matrix<T>(kept.normalized2, n, h), w.up, d_up, d_sublayer, dw.up,
                                setup.tensor_parallel);
    kept.up = {};
    kept.normalized2 = {};
    normalize_backward<T>(shape.normalization(), as_matrix<T>(kept.middle, n, h), w.norm2_weight,
                          as_matrix<C>(kept.statistics2, n, 2), d_sublayer, stream_gradient,
                          dw.norm2_weight, dw.norm2_bias, space);
    kept.statistics2 = {};
    kept.middle = {};

    // --- attention ---
    dropout_backward<T>(dropout.attention, shape.sequence, stream_gradient, d_sublayer);
    bias_backward<T>(d_sublayer, dw.out_bias, space);
    Buffer of_attended = activation<T>(setup, attention.query_columns());
    const auto d_attended = as_matrix<T>(of_attended, n, attention.query_columns());
    row_parallel_backward<T>(as_matrix<T>(kept.attended, n, attention.query_columns()), w.out,
                             d_sublayer, d_attended, dw.out);
    kept.attended = {};
    Buffer of_qkv = activation<T>(setup, attention.qkv_columns());
    const auto d_qkv = as_matrix<T>(of_qkv, n, attention.qkv_columns());
    attend_backward<T>(attention, as_matrix<T>(kept.qkv, n, attention.qkv_columns()),
                       dropout.probabilities,
                       as_matrix<C>(kept.log_sums, setup.samples * attention.heads, shape.sequence),
                       d_attended, d_qkv, space);
    of_attended = {};
    kept.qkv = {};
    kept.log_sums = {};
    if (!shape.is_gpt2()) rotate<T>(attention, shape.rotary_base, Rotation::backward, d_qkv);
    bias_backward<T>(d_qkv, dw.qkv_bias, space);
    column_parallel_backward<T>(as_matrix<T>(kept.normalized1, n, h), w.qkv, d_qkv, d_sublayer,
                                dw.qkv, setup.tensor_parallel);
    of_qkv = {};
    kept.normalized1 = {};
    normalize_backward<T>(shape.normalization(), as_matrix<T>(kept.input, n, h), w.norm1_weight,
                          as_matrix<C>(kept.statistics1, n, 2), d_sublayer, stream_gradient,
                          dw.norm1_weight, dw.norm1_bias, space);
}

#define ZEROPROOF_INSTANTIATE(T)                                                               \
    template Buffer block_forward<T>(const BlockSetup&, const BlockDropout&,                   \
                                     std::span<const ConstTensor>, Buffer, BlockOutput,        \
                                     BlockActivations&);                                       \
    template void block_backward<T>(const BlockSetup&, const BlockDropout&,                    \
                                    std::span<const ConstTensor>, BlockActivations, Matrix<T>, \
                                    std::span<const Tensor>);
ZEROPROOF_INSTANTIATE(float)
ZEROPROOF_INSTANTIATE(double)
ZEROPROOF_INSTANTIATE(Half)
ZEROPROOF_INSTANTIATE(BFloat16)

}  // namespace zeroproof::reference
