#include "collectives/transfer.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "collectives/reduce.h"

namespace zeroproof::collectives {

namespace {

constexpr std::size_t kSliceBytes = 256 * 1024;

}  // namespace

// Blocks by operation, over N ranks:
//   broadcast, reduce, all_reduce   one, the whole tensor
//   reduce_scatter, all_gather      N, block r belongs to rank r
//   all_to_all                      N * N, block r * N + s goes from rank r to rank s
//   send and receive                one
Transfer::Transfer(std::span<const Operation* const> operations) : operations_(operations) {
    const Operation& first = *operations.front();
    const std::size_t ranks = operations.size();
    switch (first.op) {
        case Op::broadcast:
        case Op::reduce:
        case Op::all_reduce:
        case Op::send:
        case Op::receive:
            blocks_ = 1;
            block_elements_ = std::max(first.in_elements, first.out_elements);
            break;
        case Op::reduce_scatter:
            blocks_ = ranks;
            block_elements_ = first.out_elements;
            break;
        case Op::all_gather:
            blocks_ = ranks;
            block_elements_ = first.in_elements;
            break;
        case Op::all_to_all:
            blocks_ = ranks * ranks;
            block_elements_ = first.in_elements / ranks;
            break;
    }
    const std::size_t slice_elements = kSliceBytes / memory::size_of(first.type);
    slices_per_block_ = (block_elements_ + slice_elements - 1) / slice_elements;
    slices_ = blocks_ * slices_per_block_;
    for (const Operation* operation : operations) read_bytes_ += operation->in_bytes();
}

void Transfer::carry_out(std::size_t slice) const {
    const Operation& first = *operations_.front();
    const std::size_t ranks = operations_.size();
    const std::size_t block = slice / slices_per_block_;
    const std::size_t slice_elements = kSliceBytes / memory::size_of(first.type);
    const std::size_t begin = slice % slices_per_block_ * slice_elements;
    const std::size_t end = std::min(begin + slice_elements, block_elements_);
    const std::size_t length = end - begin;
    switch (first.op) {
        case Op::reduce:
        case Op::all_reduce:
        case Op::reduce_scatter: reduce(block, begin, end); break;
        case Op::broadcast: {
            const auto root = static_cast<std::size_t>(first.peer);
            for (std::size_t to = 0; to < ranks; ++to) copy_block(root, begin, to, begin, length);
            break;
        }
        case Op::all_gather:
            for (std::size_t to = 0; to < ranks; ++to)
                copy_block(block, begin, to, block * block_elements_ + begin, length);
            break;
        case Op::all_to_all: {
            const std::size_t from = block / ranks;
            const std::size_t to = block % ranks;
            copy_block(from, to * block_elements_ + begin, to, from * block_elements_ + begin,
                       length);
            break;
        }
        case Op::send:
        case Op::receive: copy_block(0, begin, 1, begin, length); break;
    }
}

// Elements [begin, end) of a block, over all ranks, to those ranks that get them.
void Transfer::reduce(std::size_t block, std::size_t begin, std::size_t end) const {
    const Operation& first = *operations_.front();
    const std::size_t width = memory::size_of(first.type);
    const std::size_t in_offset =
        (first.op == Op::reduce_scatter ? block * block_elements_ + begin : begin) * width;
    std::vector<const std::byte*> inputs;
    std::vector<std::byte*> outputs;
    for (const Operation* operation : operations_) inputs.push_back(operation->input + in_offset);
    if (first.op == Op::all_reduce)
        for (const Operation* operation : operations_)
            outputs.push_back(operation->output + begin * width);
    else if (first.op == Op::reduce)
        outputs.push_back(operations_[static_cast<std::size_t>(first.peer)]->output +
                          begin * width);
    else
        outputs.push_back(operations_[block]->output + begin * width);
    reduce_elements(first.type, first.reduction, inputs, outputs, end - begin);
}

void Transfer::copy_block(std::size_t from, std::size_t from_element, std::size_t to,
                          std::size_t to_element, std::size_t elements) const {
    const std::size_t width = memory::size_of(operations_[from]->type);
    const std::byte* source = operations_[from]->input + from_element * width;
    std::byte* target = operations_[to]->output + to_element * width;
    if (source != target && elements > 0) std::memcpy(target, source, elements * width);
}

}  // namespace zeroproof::collectives
