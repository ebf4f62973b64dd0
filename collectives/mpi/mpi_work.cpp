#include "collectives/mpi/mpi_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <thread>

#include "collectives/mpi/mpi_world.h"
#include "collectives/reduce.h"

namespace zeroproof::collectives {

namespace {

using Clock = std::chrono::steady_clock;

// Of the whole sum, as the other integers have it: narrow ones are added in 64 bits.
bool adds_in_64_bits(const Operation& operation) {
    return operation.reduction == Reduction::mean &&
           (operation.type == DType::int8 || operation.type == DType::int32);
}

// Elements that MPI is to be told of: of one block, where there is one for each rank.
std::size_t counted_elements(const Operation& operation, int ranks) {
    switch (operation.op) {
        case Op::reduce_scatter: return operation.out_elements;
        case Op::all_to_all: return operation.in_elements / static_cast<std::size_t>(ranks);
        case Op::broadcast:
        case Op::receive: return operation.out_elements;
        default: return operation.in_elements;
    }
}

// Copies elements of one type to another, dividing by `divisor`.
template <typename From, typename To>
void convert(const std::byte* from, std::byte* to, std::size_t elements, From divisor) {
    for (std::size_t i = 0; i < elements; ++i) {
        From value;
        std::memcpy(&value, from + i * sizeof(From), sizeof(From));
        const To converted = static_cast<To>(value / divisor);
        std::memcpy(to + i * sizeof(To), &converted, sizeof(To));
    }
}

std::string to_text(std::chrono::milliseconds time) {
    return time.count() % 1000 == 0 ? fmt::format("{} s", time.count() / 1000)
                                    : fmt::format("{} ms", time.count());
}

}  // namespace

MpiWork::MpiWork(std::shared_ptr<MpiGroup> group, const Operation& operation)
    : group_(std::move(group)),
      operation_(operation),
      type_(adds_in_64_bits(operation) ? DType::int64 : operation.type),
      count_(type_, counted_elements(operation, static_cast<int>(group_->world_ranks.size())),
             group_->state->largest_count()) {
    // Nothing moves; and of no elements, MPI takes input and output to be the same.
    if (count_.count() == 0 && operation_.op != Op::send && operation_.op != Op::receive) return;
    const int code = call(buffers());
    if (code != MPI_SUCCESS) group_->state->demand(code, describe(operation_));
    is_pending_ = true;
}

MpiWork::~MpiWork() {
    if (!is_pending_ || !group_->state->is_sound()) return;
    constexpr std::chrono::milliseconds kMostWhileThrowing{1000};
    try {
        poll(std::uncaught_exceptions() > 0 ? std::min(kMostWhileThrowing, group_->timeout)
                                            : group_->timeout);
        finish();
    } catch (const MpiFailure&) {
        // Kept, and thrown by the rank's next operation.
    }
}

MpiWork::Buffers MpiWork::buffers() {
    const Operation& o = operation_;
    const auto rank = static_cast<std::size_t>(group_->rank);
    if (adds_in_64_bits(o)) {
        constexpr std::size_t kWidth = sizeof(std::int64_t);
        wide_input_.resize(o.in_elements * kWidth);
        result_.resize(o.out_elements * kWidth);
        if (o.type == DType::int8)
            convert<std::int8_t, std::int64_t>(o.input, wide_input_.data(), o.in_elements, 1);
        else
            convert<std::int32_t, std::int64_t>(o.input, wide_input_.data(), o.in_elements, 1);
        return {wide_input_.data(), result_.data()};
    }
    switch (o.op) {
        case Op::broadcast:
            if (group_->rank != o.peer) return {nullptr, o.output};
            if (o.input != o.output) std::memcpy(o.output, o.input, o.out_bytes());
            return {nullptr, o.output};
        case Op::reduce:
        case Op::all_reduce:
            if (o.input == o.output && o.out_elements > 0) return {MPI_IN_PLACE, o.output};
            break;
        case Op::all_gather:
            if (o.input == o.output + rank * o.in_bytes()) return {MPI_IN_PLACE, o.output};
            break;
        case Op::reduce_scatter:
            // In place, MPI would write into the first block of the input.
            if (o.output != o.input + rank * o.out_bytes()) break;
            result_.resize(o.out_bytes());
            return {o.input, result_.data()};
        default: break;
    }
    return {o.input, o.output};
}

int MpiWork::call(Buffers buffers) {
    const auto [in, out] = buffers;
    const int n = count_.count();
    const MPI_Datatype type = count_.type();
    const MPI_Comm comm = group_->comm;
    const int peer = operation_.peer;
    constexpr int kTag = 0;
    // A mean is a sum until it is there.
    const Reduction pairwise =
        operation_.reduction == Reduction::mean ? Reduction::sum : operation_.reduction;
    const auto op = [&] {
        return group_->state->reductions().of(type_, pairwise, count_.is_derived());
    };
    switch (operation_.op) {
        case Op::broadcast: return MPI_Ibcast(out, n, type, peer, comm, &request_);
        case Op::reduce: return MPI_Ireduce(in, out, n, type, op(), peer, comm, &request_);
        case Op::all_reduce: return MPI_Iallreduce(in, out, n, type, op(), comm, &request_);
        case Op::reduce_scatter:
            return MPI_Ireduce_scatter_block(in, out, n, type, op(), comm, &request_);
        case Op::all_gather: return MPI_Iallgather(in, n, type, out, n, type, comm, &request_);
        case Op::all_to_all: return MPI_Ialltoall(in, n, type, out, n, type, comm, &request_);
        case Op::send: return MPI_Isend(in, n, type, peer, kTag, comm, &request_);
        case Op::receive: return MPI_Irecv(out, n, type, peer, kTag, comm, &request_);
    }
    throw std::logic_error("no such operation");
}

void MpiWork::wait() {
    if (!is_pending_) return;
    group_->state->demand_sound();
    poll(group_->timeout);
    finish();
}

void MpiWork::poll(std::chrono::milliseconds timeout) {
    // Polls between looks at the clock. Ranks may outnumber the processors: who waits lets others
    // run, whom it may be waiting for.
    constexpr int kPolls = 64;
    // Of those that wait politely.
    constexpr std::chrono::microseconds kBusy{50};
    constexpr int kSleptPart = 8;
    constexpr std::chrono::microseconds kLongestSleep{100};
    constexpr std::chrono::milliseconds kBetweenHearings{10};
    MpiState& state = *group_->state;
    MPI_Status status;
    Clock::time_point began{};
    Clock::time_point heard{};
    for (;;) {
        for (int i = 0; i < kPolls; ++i) {
            int done = 0;
            if (const int code = MPI_Test(&request_, &done, &status); code != MPI_SUCCESS) {
                is_pending_ = false;
                state.demand(code, describe(operation_));
            }
            if (done == 0) continue;
            is_pending_ = false;
            if (operation_.op != Op::receive) return;
            MPI_Count elements = 0;
            state.demand(MPI_Get_elements_x(&status, count_.type(), &elements),
                         "MPI_Get_elements_x");
            if (static_cast<std::size_t>(elements) != operation_.out_elements)
                state.fail(fmt::format("rank {}: {}: {} were sent", state.rank(),
                                       describe(operation_), elements));
            return;
        }
        const Clock::time_point now = Clock::now();
        if (began == Clock::time_point{}) began = heard = now;
        if (now - began > timeout)
            state.fail(fmt::format("rank {} waited {} for {}: a rank has died, or never started it",
                                   state.rank(), to_text(timeout), describe(operation_)));
        if (now - heard > kBetweenHearings) {
            state.hear_failures();
            heard = now;
        }
        if (state.waiting() == Waiting::politely && now - began > kBusy)
            std::this_thread::sleep_for(
                std::min<Clock::duration>((now - began) / kSleptPart, kLongestSleep));
        else
            std::this_thread::yield();
    }
}

void MpiWork::finish() {
    const Operation& o = operation_;
    const auto ranks = static_cast<int>(group_->world_ranks.size());
    if (adds_in_64_bits(o)) {
        if (o.type == DType::int8)
            convert<std::int64_t, std::int8_t>(result_.data(), o.output, o.out_elements, ranks);
        else
            convert<std::int64_t, std::int32_t>(result_.data(), o.output, o.out_elements, ranks);
        return;
    }
    if (!result_.empty()) std::memcpy(o.output, result_.data(), result_.size());
    if (o.reduction == Reduction::mean) divide_elements(o.type, o.output, o.out_elements, ranks);
}

}  // namespace zeroproof::collectives
