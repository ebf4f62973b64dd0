#include "suites/conformance/transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace zeroproof::suites {

namespace {

using collectives::Op;
using collectives::Reduction;

// Sums of integers wrap; everything else is rounded to nearest even.
double stored(memory::DType type, double value) {
    if (type == memory::DType::int8) {
        const auto wrapped = static_cast<std::int8_t>(
            static_cast<std::uint8_t>(static_cast<std::int64_t>(value) & 0xFF));
        return wrapped;
    }
    std::int64_t room = 0;
    memory::store_element(type, &room, 0, value);
    return memory::load_element(type, &room, 0);
}

double reduced(const TransportOperation& operation, int ranks, std::size_t element) {
    double result = transport_input(operation, ranks, 0, element);
    for (int rank = 1; rank < ranks; ++rank) {
        const double next = transport_input(operation, ranks, rank, element);
        switch (operation.reduction) {
            case Reduction::max: result = std::max(result, next); break;
            case Reduction::min: result = std::min(result, next); break;
            default: result += next;
        }
    }
    return operation.reduction == Reduction::mean ? result / ranks : result;
}

}  // namespace

std::vector<TransportOperation> transport_operations(memory::DType type, int ranks) {
    std::vector<TransportOperation> operations{{"broadcast", Op::broadcast},
                                               {"all_gather", Op::all_gather},
                                               {"all_to_all", Op::all_to_all}};
    if (ranks > 1) operations.push_back({"send and receive", Op::send});
    for (const Op op : {Op::reduce, Op::all_reduce, Op::reduce_scatter})
        for (const Reduction reduction :
             {Reduction::sum, Reduction::mean, Reduction::max, Reduction::min})
            operations.push_back(
                {fmt::format("{} {}", collectives::name_of(op), collectives::name_of(reduction)),
                 op, reduction});
    if (memory::size_of(type) == 2)
        for (const Op op : {Op::reduce, Op::all_reduce, Op::reduce_scatter})
            operations.push_back({fmt::format("{} sum, accumulating", collectives::name_of(op)), op,
                                  Reduction::sum, TransportInput::accumulating,
                                  type == memory::DType::fp16 ? 2048.0 : 256.0});
    if (type == memory::DType::fp16)
        for (const Op op : {Op::reduce, Op::all_reduce, Op::reduce_scatter})
            operations.push_back(
                {fmt::format("{} mean, beyond the range", collectives::name_of(op)), op,
                 Reduction::mean, TransportInput::beyond_range});
    return operations;
}

double transport_input(const TransportOperation& operation, int ranks, int rank,
                       std::size_t element) {
    if (operation.input == TransportInput::beyond_range) return 40000;
    if (operation.input == TransportInput::accumulating) return rank == 0 ? operation.large : 1;
    const auto mixed = static_cast<std::size_t>(rank) * 31 + element * 7;
    return ranks * (static_cast<double>(mixed % 11) - 5);
}

TransportCounts transport_counts(const TransportOperation& operation, int ranks, int rank,
                                 std::size_t count) {
    const std::size_t all = count * static_cast<std::size_t>(ranks);
    switch (operation.op) {
        case Op::reduce_scatter: return {all, count};
        case Op::all_gather: return {count, all};
        case Op::all_to_all: return {all, all};
        case Op::reduce: return {count, rank == ranks - 1 ? count : 0};
        default: return {count, count};
    }
}

std::vector<double> transport_output(const TransportOperation& operation,
                                     const TransportCase& transport, int ranks, int rank) {
    const std::size_t count = transport.count;
    std::vector<double> output(transport_counts(operation, ranks, rank, count).out);
    for (std::size_t i = 0; i < output.size(); ++i) {
        const auto input = [&](int from, std::size_t element) {
            return transport_input(operation, ranks, from, element);
        };
        const auto block = static_cast<int>(count > 0 ? i / count : 0);
        const std::size_t within = count > 0 ? i % count : 0;
        double value = 0;
        switch (operation.op) {
            case Op::broadcast: value = input(ranks - 1, i); break;
            case Op::all_gather: value = input(block, within); break;
            case Op::all_to_all:
                value = input(block, static_cast<std::size_t>(rank) * count + within);
                break;
            case Op::send:
            case Op::receive: value = input((rank + ranks - 1) % ranks, i); break;
            case Op::reduce_scatter:
                value = reduced(operation, ranks, static_cast<std::size_t>(rank) * count + i);
                break;
            case Op::reduce:
            case Op::all_reduce: value = reduced(operation, ranks, i); break;
        }
        output[i] = stored(transport.type, value);
    }
    return output;
}

}  // namespace zeroproof::suites
