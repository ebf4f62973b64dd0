// What the ranks of a ThreadWorld share: matching of their operations, progress, and failure.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "collectives/thread_world.h"

namespace zeroproof::collectives {

// An operation from its first start to its end.
struct InFlight;

// A sequence of operations among a fixed set of ranks: a group, or a pair within one.
struct Channel {
    std::vector<int> world_ranks;
    std::vector<std::uint64_t> next_sequence;
    std::map<std::uint64_t, std::shared_ptr<InFlight>> gathering;

    explicit Channel(std::vector<int> ranks)
        : world_ranks(std::move(ranks)), next_sequence(world_ranks.size(), 0) {}
};

struct Group {
    int id = 0;
    Channel channel;
    std::map<std::array<int, 2>, Channel> pairs;  // by {sender, receiver}

    Group(int id_, std::vector<int> ranks) : id(id_), channel(std::move(ranks)) {}
};

// Guards everything by one mutex, but for the memory that operations move.
class ThreadWorldState {
  public:
    ThreadWorldState(int ranks, std::chrono::milliseconds timeout);

    std::size_t ranks() const { return wake_.size(); }

    // The group of that origin (parent, how manieth split of it, colour), made when first asked.
    std::shared_ptr<Group> group(std::tuple<int, int, int> origin, const std::vector<int>& ranks);

    // Matches the operation with those of the other ranks, by its place in their sequence.
    std::shared_ptr<InFlight> start(Group& group, int rank, const Operation& operation);
    // Returns once the operation is done. Throws WorldFailed once the world has failed.
    void wait(InFlight& work, int world_rank);

    void end(int world_rank);
    void rank_threw(int world_rank, const std::string& what, std::exception_ptr exception);
    std::unique_ptr<WorldFailure> take_failure();

  private:
    static Channel& pair_channel(Group& group, int rank, const Operation& operation);
    void check_agreement(const InFlight& work, std::size_t place, const Operation& operation);

    // An operation that all its ranks have started.
    void run(InFlight& work, std::unique_lock<std::mutex>& lock);

    // Carries out slices that nobody has begun, without the lock.
    void help(InFlight& work, std::unique_lock<std::mutex>& lock);
    void wake_waiters(const InFlight& work);

    void fail_if_deadlocked();
    // Notes the first failure, with what each rank does, and wakes every rank.
    void fail(FailureKind kind, std::string message, std::exception_ptr exception = nullptr);
    std::string doing(std::size_t rank) const;
    void throw_if_failed() const;

    std::chrono::milliseconds timeout_;
    std::mutex mutex_;
    std::map<std::tuple<int, int, int>, std::shared_ptr<Group>> groups_;
    // By world rank:
    std::vector<const InFlight*> waits_for_;
    std::vector<bool> ended_;
    std::vector<std::condition_variable> wake_;
    std::unique_ptr<WorldFailure> failure_;
    std::string failed_message_;
};

}  // namespace zeroproof::collectives
