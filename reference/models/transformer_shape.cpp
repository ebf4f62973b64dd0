#include "reference/models/transformer_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "reference/options.h"
#include "reference/tensor/philox.h"

namespace zeroproof::reference {

namespace {

using Cut = TransformerParameter::Cut;

void require_divides(const char* what, std::size_t whole, const char* by, std::size_t parts) {
    if (parts == 0 || whole % parts != 0)
        throw Unsupported(fmt::format("{} of {} cannot be divided by {} of {}: choose a multiple",
                                      what, whole, by, parts));
}

// The r-th of N equal parts.
Cut part_of(std::size_t whole, ShardPlace place) {
    const std::size_t part = whole / place.ranks;
    return {place.rank * part, (place.rank + 1) * part};
}

Cut shifted(Cut cut, std::size_t by) {
    return {cut.begin + by, cut.end + by};
}

TransformerParameter row(std::string name, std::size_t columns, TransformerParameter::Start start) {
    return {std::move(name), 1, columns, {{0, 1}}, {0, columns}, start, 0};
}

TransformerParameter matrix(std::string name, std::size_t rows, std::size_t columns,
                            double deviation) {
    return {std::move(name), rows,         columns,
            {{0, rows}},     {0, columns}, TransformerParameter::Start::normal,
            deviation};
}

class UnitMaker {
  public:
    UnitMaker(const TransformerShape& shape, ShardPlace place) : shape_(shape), place_(place) {}

    TransformerUnit embedding() const {
        TransformerUnit unit{"embedding", {}, false};
        unit.parameters.push_back(
            matrix("embedding.tokens", shape_.vocabulary, shape_.hidden, kDeviation));
        if (shape_.is_gpt2())
            unit.parameters.push_back(
                matrix("embedding.positions", shape_.sequence, shape_.hidden, kDeviation));
        return unit;
    }

    TransformerUnit block(std::size_t layer) const {
        const std::string prefix = fmt::format("block.{}.", layer);
        TransformerUnit unit{fmt::format("block {}", layer), {}, false};
        const std::size_t hidden = shape_.hidden;
        const std::size_t queries = shape_.heads * shape_.head_size();
        const std::size_t keys = shape_.kv_heads * shape_.head_size();
        const Cut of_queries = part_of(queries, place_);
        const Cut of_keys = part_of(keys, place_);
        const std::vector<Cut> of_qkv{of_queries, shifted(of_keys, queries),
                                      shifted(of_keys, queries + keys)};
        const Cut of_inner = part_of(shape_.feed_forward, place_);
        std::vector<Cut> of_up{of_inner};
        if (columns_in(shape_.nonlinearity()) == 2)
            of_up.push_back(shifted(of_inner, shape_.feed_forward));
        // What is added to the stream starts smaller, so that the sum of all layers does not grow.
        const double joining = kDeviation / std::sqrt(2.0 * static_cast<double>(shape_.layers));

        add_normalization(unit, prefix + "norm1");
        add_column_parallel(unit, prefix + "attention.qkv", queries + 2 * keys, hidden, of_qkv);
        add_row_parallel(unit, prefix + "attention.out", hidden, queries, of_queries, joining);
        add_normalization(unit, prefix + "norm2");
        add_column_parallel(unit, prefix + "feed_forward.up",
                            columns_in(shape_.nonlinearity()) * shape_.feed_forward, hidden, of_up);
        add_row_parallel(unit, prefix + "feed_forward.down", hidden, shape_.feed_forward, of_inner,
                         joining);
        return unit;
    }

    TransformerUnit head() const {
        TransformerUnit unit{"head", {}, shape_.is_gpt2()};
        add_normalization(unit, "head.norm");
        if (!unit.reuses_embedding)
            unit.parameters.push_back(
                matrix("head.tokens", shape_.vocabulary, shape_.hidden, kDeviation));
        return unit;
    }

  private:
    static constexpr double kDeviation = 0.02;  // as GPT-2 and Llama start

    void add_normalization(TransformerUnit& unit, const std::string& name) const {
        using Start = TransformerParameter::Start;
        unit.parameters.push_back(row(name + ".weight", shape_.hidden, Start::one));
        if (shape_.is_gpt2())
            unit.parameters.push_back(row(name + ".bias", shape_.hidden, Start::zero));
    }

    void add_column_parallel(TransformerUnit& unit, const std::string& name, std::size_t rows,
                             std::size_t columns, const std::vector<Cut>& cuts) const {
        TransformerParameter weight = matrix(name + ".weight", rows, columns, kDeviation);
        weight.row_cuts = cuts;
        unit.parameters.push_back(std::move(weight));
        if (!shape_.is_gpt2()) return;
        // A bias belongs to the rows of its weight; it is a column of theirs.
        TransformerParameter bias{
            name + ".bias", rows, 1, cuts, {0, 1}, TransformerParameter::Start::zero, 0};
        unit.parameters.push_back(std::move(bias));
    }

    void add_row_parallel(TransformerUnit& unit, const std::string& name, std::size_t rows,
                          std::size_t columns, Cut cut, double deviation) const {
        TransformerParameter weight = matrix(name + ".weight", rows, columns, deviation);
        weight.column_cut = cut;
        unit.parameters.push_back(std::move(weight));
        // Added once, after the sum over the ranks: each has all of it.
        if (shape_.is_gpt2())
            unit.parameters.push_back(row(name + ".bias", rows, TransformerParameter::Start::zero));
    }

    const TransformerShape& shape_;
    ShardPlace place_;
};

// Element n of a stream of normally distributed numbers (Box and Muller).
double normal(std::uint64_t n, std::uint32_t stream, std::uint64_t seed) {
    constexpr std::uint32_t kNoDropoutSite = 0xFFFFFFFF;
    const auto numbers =
        philox({static_cast<std::uint32_t>(n / 4), static_cast<std::uint32_t>(n >> 34), stream,
                kNoDropoutSite},
               {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
    const std::size_t pair = n % 4 / 2 * 2;
    const double radius =
        std::sqrt(-2 * std::log((static_cast<double>(numbers[pair]) + 1) * 0x1p-32));
    const double angle = 2 * std::numbers::pi * static_cast<double>(numbers[pair + 1]) * 0x1p-32;
    return radius * (n % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

}  // namespace

void check(const TransformerShape& shape, std::size_t ranks) {
    for (const std::size_t size : {shape.layers, shape.hidden, shape.heads, shape.kv_heads,
                                   shape.feed_forward, shape.vocabulary, shape.sequence, ranks})
        if (size == 0) throw Unsupported("a transformer with a size of zero");
    require_divides("a hidden size", shape.hidden, "a number of heads", shape.heads);
    require_divides("a number of heads", shape.heads, "a number of key and value heads",
                    shape.kv_heads);
    if (!shape.is_gpt2() && shape.head_size() % 2 != 0)
        throw Unsupported(fmt::format("a head size of {} is odd: rotary positions turn pairs",
                                      shape.head_size()));
    require_divides("a number of key and value heads", shape.kv_heads, "a tensor-parallel group",
                    ranks);
    require_divides("a feed-forward size", shape.feed_forward, "a tensor-parallel group", ranks);
    if (!(shape.dropout >= 0 && shape.dropout < 1))
        throw Unsupported(
            fmt::format("a dropout of {}: expected at least 0 and less than 1", shape.dropout));
}

std::size_t TransformerParameter::local_rows() const {
    std::size_t count = 0;
    for (const Cut& cut : row_cuts) count += cut.end - cut.begin;
    return count;
}

std::vector<TransformerUnit> transformer_units(const TransformerShape& shape, ShardPlace place) {
    const UnitMaker maker(shape, place);
    std::vector<TransformerUnit> units{maker.embedding()};
    for (std::size_t layer = 0; layer < shape.layers; ++layer) units.push_back(maker.block(layer));
    units.push_back(maker.head());
    return units;
}

void fill_start(const TransformerParameter& parameter, std::uint32_t number, std::uint64_t seed,
                std::size_t begin, std::span<float> values) {
    using Start = TransformerParameter::Start;
    if (parameter.start != Start::normal) {
        std::ranges::fill(values, parameter.start == Start::one ? 1.0f : 0.0f);
        return;
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
        std::size_t at = (begin + i) / parameter.local_columns();
        const std::size_t column =
            parameter.column_cut.begin + (begin + i) % parameter.local_columns();
        std::size_t cut = 0;
        while (at >= parameter.row_cuts[cut].end - parameter.row_cuts[cut].begin) {
            at -= parameter.row_cuts[cut].end - parameter.row_cuts[cut].begin;
            ++cut;
        }
        const std::size_t row_of_model = parameter.row_cuts[cut].begin + at;
        values[i] = static_cast<float>(
            parameter.deviation * normal(row_of_model * parameter.columns + column, number, seed));
    }
}

AttentionShape attention_shape(const TransformerShape& shape, ShardPlace place) {
    return {.heads = shape.heads / place.ranks,
            .kv_heads = shape.kv_heads / place.ranks,
            .head_size = shape.head_size(),
            .sequence = shape.sequence,
            .first_head = place.rank * (shape.heads / place.ranks)};
}

}  // namespace zeroproof::reference
