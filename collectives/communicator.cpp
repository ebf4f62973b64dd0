#include "collectives/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>

namespace zeroproof::collectives {

namespace {

bool overlap(const std::byte* a, std::size_t a_bytes, const std::byte* b, std::size_t b_bytes) {
    const std::less<> before;
    return a_bytes > 0 && b_bytes > 0 && before(a, b + b_bytes) && before(b, a + a_bytes);
}

// Where an output may begin that shares memory with the input.
const std::byte* in_place_output(const Operation& operation, int rank) {
    const auto r = static_cast<std::size_t>(rank);
    switch (operation.op) {
        case Op::broadcast:
        case Op::reduce:
        case Op::all_reduce: return operation.input;
        case Op::reduce_scatter: return operation.input + r * operation.out_bytes();
        case Op::all_gather: return operation.input - r * operation.in_bytes();
        default: return nullptr;
    }
}

}  // namespace

std::string_view name_of(Op op) {
    constexpr std::string_view names[] = {"broadcast",      "reduce",     "all_reduce",
                                          "reduce_scatter", "all_gather", "all_to_all",
                                          "send",           "receive"};
    return names[static_cast<std::size_t>(op)];
}

std::optional<Op> op_from_name(std::string_view name) {
    for (const Op op : kCollectiveOps)
        if (name_of(op) == name) return op;
    for (const Op op : {Op::send, Op::receive})
        if (name_of(op) == name) return op;
    return std::nullopt;
}

bool is_reduction(Op op) {
    return op == Op::reduce || op == Op::all_reduce || op == Op::reduce_scatter;
}

std::string_view name_of(Reduction reduction) {
    constexpr std::string_view names[] = {"none", "sum", "mean", "max", "min"};
    return names[static_cast<std::size_t>(reduction)];
}

std::string describe(const Operation& operation) {
    std::string text =
        fmt::format("{} of {} {} to {}", name_of(operation.op), operation.in_elements,
                    memory::name_of(operation.type), operation.out_elements);
    if (operation.reduction != Reduction::none)
        text += fmt::format(", {}", name_of(operation.reduction));
    if (operation.peer >= 0)
        text += fmt::format(
            ", {} {}", operation.op == Op::send || operation.op == Op::receive ? "peer" : "root",
            operation.peer);
    return text;
}

void check(const Operation& operation, int rank, int size) {
    const auto reject = [&](std::string_view why) {
        throw BadOperation(
            fmt::format("rank {} of {}: {}: {}", rank, size, describe(operation), why));
    };
    const auto n = static_cast<std::size_t>(size);
    const std::size_t in = operation.in_elements;
    const std::size_t out = operation.out_elements;
    const bool has_peer = operation.op == Op::broadcast || operation.op == Op::reduce ||
                          operation.op == Op::send || operation.op == Op::receive;
    if (has_peer && (operation.peer < 0 || operation.peer >= size)) reject("no such peer");
    // Neither the products below nor the size of any rank's memory may wrap around.
    const std::size_t most =
        std::numeric_limits<std::size_t>::max() / memory::size_of(operation.type) / n;
    if (in > most || out > most) reject("its counts are too large");
    bool counts_fit = false;
    switch (operation.op) {
        case Op::broadcast:
        case Op::all_reduce: counts_fit = in == out; break;
        case Op::reduce: counts_fit = out == (rank == operation.peer ? in : 0); break;
        case Op::reduce_scatter: counts_fit = in == n * out; break;
        case Op::all_gather: counts_fit = out == n * in; break;
        case Op::all_to_all: counts_fit = in == out && in % n == 0; break;
        case Op::send: counts_fit = out == 0 && operation.peer != rank; break;
        case Op::receive: counts_fit = in == 0 && operation.peer != rank; break;
    }
    if (!counts_fit) reject("its counts do not fit each other");
    if (is_reduction(operation.op) != (operation.reduction != Reduction::none))
        reject("a reduction is for reduce, all_reduce and reduce_scatter, and needed there");
    const bool reads_input = operation.op != Op::broadcast || rank == operation.peer;
    const std::size_t read_bytes = reads_input ? operation.in_bytes() : 0;
    if ((read_bytes > 0 && operation.input == nullptr) || (out > 0 && operation.output == nullptr))
        reject("no memory is given");
    if (overlap(operation.input, read_bytes, operation.output, operation.out_bytes()) &&
        operation.output != in_place_output(operation, rank))
        reject("input and output overlap other than in place");
}

Request Communicator::all_reduce(const std::byte* input, std::byte* output, std::size_t count,
                                 DType type, Reduction reduction) {
    return start({Op::all_reduce, type, reduction, input, output, count, count, -1});
}

Request Communicator::reduce_scatter(const std::byte* input, std::byte* output, std::size_t count,
                                     DType type, Reduction reduction) {
    // Where this wraps around, `count` itself is too large and is rejected.
    const std::size_t all = count * static_cast<std::size_t>(size());
    return start({Op::reduce_scatter, type, reduction, input, output, all, count, -1});
}

Request Communicator::all_gather(const std::byte* input, std::byte* output, std::size_t count,
                                 DType type) {
    const std::size_t all = count * static_cast<std::size_t>(size());
    return start({Op::all_gather, type, Reduction::none, input, output, count, all, -1});
}

Request Communicator::broadcast(std::byte* data, std::size_t count, DType type, int root) {
    return start({Op::broadcast, type, Reduction::none, data, data, count, count, root});
}

SplitGroup agree_on_split(Communicator& group, int color, int key) {
    struct Choice {
        std::int32_t color;
        std::int32_t key;
    };
    const Choice mine{color, key};
    std::vector<Choice> choices(static_cast<std::size_t>(group.size()));
    group
        .all_gather(reinterpret_cast<const std::byte*>(&mine),
                    reinterpret_cast<std::byte*>(choices.data()), 2, DType::int32)
        .wait();
    if (color < 0) return {};
    std::vector<std::pair<std::int32_t, int>> members;  // (key, rank)
    for (int rank = 0; rank < group.size(); ++rank)
        if (const Choice& choice = choices[static_cast<std::size_t>(rank)]; choice.color == color)
            members.emplace_back(choice.key, rank);
    std::ranges::sort(members);
    SplitGroup split;
    for (const auto& [unused_key, rank] : members) {
        if (rank == group.rank()) split.rank = static_cast<int>(split.world_ranks.size());
        split.world_ranks.push_back(group.world_ranks()[static_cast<std::size_t>(rank)]);
    }
    return split;
}

}  // namespace zeroproof::collectives
