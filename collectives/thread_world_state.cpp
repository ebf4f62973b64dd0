#include "collectives/thread_world_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>
#include <optional>
#include <utility>

#include "collectives/transfer.h"

namespace zeroproof::collectives {

namespace {

using Clock = std::chrono::steady_clock;

// Up to here the rank that starts last carries the operation out alone, which saves the others a
// wake-up to help with it.
constexpr std::size_t kSmallBytes = 128 * 1024;

}  // namespace

// Guarded by the world's mutex, but for `next_slice`.
struct InFlight {
    std::vector<Operation> operations;  // by place in the channel
    std::vector<bool> started;
    std::size_t started_count = 0;
    std::vector<const Operation*> pointers;
    std::optional<Transfer> transfer;
    std::atomic<std::size_t> next_slice = 0;
    std::size_t slices_left = 0;
    int helpers = 0;  // threads that carry out slices now
    enum class Status { gathering, running, done } status = Status::gathering;
    std::uint64_t sequence = 0;
    std::vector<int> world_ranks;
};

ThreadWorldState::ThreadWorldState(int ranks, std::chrono::milliseconds timeout)
    : timeout_(timeout),
      waits_for_(static_cast<std::size_t>(ranks)),
      ended_(static_cast<std::size_t>(ranks), false),
      wake_(static_cast<std::size_t>(ranks)) {
    std::vector<int> all(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) all[static_cast<std::size_t>(rank)] = rank;
    group({-1, 0, 0}, all);
}

std::shared_ptr<Group> ThreadWorldState::group(std::tuple<int, int, int> origin,
                                               const std::vector<int>& ranks) {
    const std::lock_guard lock(mutex_);
    auto& entry = groups_[origin];
    if (!entry) entry = std::make_shared<Group>(static_cast<int>(groups_.size()), ranks);
    return entry;
}

std::shared_ptr<InFlight> ThreadWorldState::start(Group& group, int rank,
                                                  const Operation& operation) {
    std::unique_lock lock(mutex_);
    throw_if_failed();
    const bool is_pair = operation.op == Op::send || operation.op == Op::receive;
    Channel& channel = is_pair ? pair_channel(group, rank, operation) : group.channel;
    const auto place =
        static_cast<std::size_t>(is_pair ? (operation.op == Op::send ? 0 : 1) : rank);
    const std::uint64_t sequence = channel.next_sequence[place]++;
    auto& entry = channel.gathering[sequence];
    if (!entry) {
        entry = std::make_shared<InFlight>();
        entry->operations.resize(channel.world_ranks.size());
        entry->started.resize(channel.world_ranks.size(), false);
        entry->sequence = sequence;
        entry->world_ranks = channel.world_ranks;
    }
    const std::shared_ptr<InFlight> work = entry;
    check_agreement(*work, place, operation);
    work->operations[place] = operation;
    work->started[place] = true;
    if (++work->started_count == work->operations.size()) {
        channel.gathering.erase(sequence);
        run(*work, lock);
    }
    return work;
}

void ThreadWorldState::wait(InFlight& work, int world_rank) {
    std::unique_lock lock(mutex_);
    const auto deadline = Clock::now() + timeout_;
    const auto self = static_cast<std::size_t>(world_rank);
    waits_for_[self] = &work;
    while (work.status != InFlight::Status::done && !failure_) {
        if (work.status == InFlight::Status::running) {
            if (work.next_slice < work.transfer->slices())
                help(work, lock);
            else
                wake_[self].wait(lock);  // for helpers, who end: the time-out is for ranks alone
            continue;
        }
        fail_if_deadlocked();
        if (failure_) break;
        if (wake_[self].wait_until(lock, deadline) == std::cv_status::timeout &&
            work.status == InFlight::Status::gathering)
            fail(FailureKind::timeout,
                 fmt::format("rank {} waited longer than {} ms", world_rank, timeout_.count()));
    }
    // Memory of this rank may still be in use by a helper: it must not go before that ends.
    wake_[self].wait(lock, [&] { return work.helpers == 0; });
    waits_for_[self] = nullptr;
    if (work.status != InFlight::Status::done) throw_if_failed();
}

void ThreadWorldState::end(int world_rank) {
    const std::lock_guard lock(mutex_);
    ended_[static_cast<std::size_t>(world_rank)] = true;
    fail_if_deadlocked();
}

void ThreadWorldState::rank_threw(int world_rank, const std::string& what,
                                  std::exception_ptr exception) {
    const std::lock_guard lock(mutex_);
    const std::string message = fmt::format("rank {} threw: {}", world_rank, what);
    // A rank's requests end before its exception gets here, and may have found a deadlock.
    if (failure_ && !failure_->rank_exception) {
        failure_->message += "\n  " + message;
        failure_->rank_exception = exception;
    }
    fail(FailureKind::rank_threw, message, exception);
}

std::unique_ptr<WorldFailure> ThreadWorldState::take_failure() {
    const std::lock_guard lock(mutex_);
    return std::move(failure_);
}

Channel& ThreadWorldState::pair_channel(Group& group, int rank, const Operation& operation) {
    std::array pair{rank, operation.peer};
    if (operation.op == Op::receive) std::swap(pair[0], pair[1]);
    const auto& ranks = group.channel.world_ranks;
    return group.pairs
        .try_emplace(pair, std::vector{ranks[static_cast<std::size_t>(pair[0])],
                                       ranks[static_cast<std::size_t>(pair[1])]})
        .first->second;
}

void ThreadWorldState::check_agreement(const InFlight& work, std::size_t place,
                                       const Operation& operation) {
    for (std::size_t other = 0; other < work.operations.size(); ++other) {
        if (!work.started[other]) continue;
        const Operation& theirs = work.operations[other];
        const bool pair = operation.op == Op::send || operation.op == Op::receive;
        const bool same =
            pair
                ? operation.type == theirs.type && operation.in_elements + operation.out_elements ==
                                                       theirs.in_elements + theirs.out_elements
                : operation.same_kind_as(theirs) && operation.peer == theirs.peer &&
                      operation.in_elements == theirs.in_elements &&
                      (operation.op == Op::reduce || operation.out_elements == theirs.out_elements);
        if (same) continue;
        fail(FailureKind::disagreement,
             fmt::format("operation {} of ranks {}: rank {} started {}, rank {} started {}",
                         work.sequence, work.world_ranks, work.world_ranks[other], describe(theirs),
                         work.world_ranks[place], describe(operation)));
        throw_if_failed();
    }
}

void ThreadWorldState::run(InFlight& work, std::unique_lock<std::mutex>& lock) {
    for (const Operation& operation : work.operations) work.pointers.push_back(&operation);
    work.transfer.emplace(work.pointers);
    work.slices_left = work.transfer->slices();
    work.status = work.slices_left == 0 ? InFlight::Status::done : InFlight::Status::running;
    if (work.slices_left > 0 && work.transfer->read_bytes() <= kSmallBytes)
        help(work, lock);
    else
        wake_waiters(work);
}

void ThreadWorldState::help(InFlight& work, std::unique_lock<std::mutex>& lock) {
    ++work.helpers;
    lock.unlock();
    std::size_t carried_out = 0;
    for (std::size_t slice; (slice = work.next_slice++) < work.transfer->slices(); ++carried_out)
        work.transfer->carry_out(slice);
    lock.lock();
    --work.helpers;
    work.slices_left -= carried_out;
    if (work.slices_left == 0) work.status = InFlight::Status::done;
    if (work.status == InFlight::Status::done || work.helpers == 0) wake_waiters(work);
}

void ThreadWorldState::wake_waiters(const InFlight& work) {
    for (std::size_t rank = 0; rank < ranks(); ++rank)
        if (waits_for_[rank] == &work) wake_[rank].notify_one();
}

void ThreadWorldState::fail_if_deadlocked() {
    bool someone_waits = false;
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
        const bool stuck =
            waits_for_[rank] != nullptr && waits_for_[rank]->status == InFlight::Status::gathering;
        if (!stuck && !ended_[rank]) return;
        someone_waits |= stuck;
    }
    if (someone_waits)
        fail(FailureKind::deadlock, "no rank can go on: each waits for another or has ended");
}

void ThreadWorldState::fail(FailureKind kind, std::string message, std::exception_ptr exception) {
    if (failure_) return;
    for (std::size_t rank = 0; rank < ranks(); ++rank)
        message += fmt::format("\n  rank {} {}", rank, doing(rank));
    failure_ = std::make_unique<WorldFailure>(
        WorldFailure{kind, std::move(message), std::move(exception)});
    failed_message_ = failure_->message;
    for (auto& wake : wake_) wake.notify_one();
}

std::string ThreadWorldState::doing(std::size_t rank) const {
    if (ended_[rank]) return "has ended";
    const InFlight* work = waits_for_[rank];
    if (work == nullptr) return "computes";
    std::size_t place = 0;
    std::vector<int> missing;
    for (std::size_t i = 0; i < work->started.size(); ++i) {
        if (!work->started[i]) missing.push_back(work->world_ranks[i]);
        if (work->world_ranks[i] == static_cast<int>(rank)) place = i;
    }
    return fmt::format("waits for {} (operation {} of ranks {}), not started by ranks {}",
                       describe(work->operations[place]), work->sequence, work->world_ranks,
                       missing);
}

void ThreadWorldState::throw_if_failed() const {
    if (!failed_message_.empty()) throw WorldFailed(failed_message_);
}

}  // namespace zeroproof::collectives
