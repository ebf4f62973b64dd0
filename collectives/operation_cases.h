// For tests of backends: every operation, reduction and way to lie in memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "collectives/communicator.h"

namespace zeroproof::collectives {

struct OperationCase {
    Op op;
    DType type;
    Reduction reduction;
    std::size_t count;
    int root;
    bool in_place;
    bool aligned;
};

// All memory of one rank: input and output, with room around both that must stay as it is.
struct RankMemory {
    std::vector<std::byte> bytes;
    std::size_t input = 0;  // offsets
    std::size_t output = 0;
    std::size_t in_elements = 0;
    std::size_t out_elements = 0;
};

// The input is yet to be filled.
inline RankMemory lay_out(const OperationCase& c, int ranks, int rank) {
    const auto n = static_cast<std::size_t>(ranks);
    const bool many_in = c.op == Op::reduce_scatter || c.op == Op::all_to_all;
    const bool many_out = c.op == Op::all_gather || c.op == Op::all_to_all;
    RankMemory memory;
    memory.in_elements = many_in ? n * c.count : c.count;
    memory.out_elements = many_out ? n * c.count : c.count;
    if (c.op == Op::reduce && rank != c.root) memory.out_elements = 0;

    const std::size_t width = memory::size_of(c.type);
    const std::size_t block = static_cast<std::size_t>(rank) * c.count * width;
    const std::size_t odd = c.aligned ? 0 : 1;
    memory.input = 32 + odd;
    memory.output = ((memory.input + memory.in_elements * width) / 32 + 1) * 32 + odd;
    if (c.in_place) {
        memory.output = memory.input;
        if (c.op == Op::reduce_scatter) memory.output += block;
        if (c.op == Op::all_gather) memory.input += block;
    }
    const std::size_t end = std::max(memory.input + memory.in_elements * width,
                                     memory.output + memory.out_elements * width);
    memory.bytes.assign(end + 32, std::byte{0xA5});
    return memory;
}

inline Operation operation_of(const OperationCase& c, RankMemory& memory) {
    const bool has_root = c.op == Op::broadcast || c.op == Op::reduce;
    return {c.op,
            c.type,
            c.reduction,
            memory.bytes.data() + memory.input,
            memory.bytes.data() + memory.output,
            memory.in_elements,
            memory.out_elements,
            has_root ? c.root : -1};
}

inline std::vector<OperationCase> operation_cases(DType type, std::size_t count, int ranks) {
    std::vector<OperationCase> cases;
    for (const Op op : kCollectiveOps)
        for (const Reduction reduction :
             {Reduction::none, Reduction::sum, Reduction::mean, Reduction::max, Reduction::min})
            for (const bool in_place : {false, true})
                for (const bool aligned : {false, true}) {
                    if (is_reduction(op) == (reduction == Reduction::none)) continue;
                    if (in_place && op == Op::all_to_all) continue;
                    const int root = static_cast<int>(cases.size()) % ranks;
                    cases.push_back({op, type, reduction, count, root, in_place, aligned});
                }
    return cases;
}

}  // namespace zeroproof::collectives
