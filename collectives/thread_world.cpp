#include "collectives/thread_world.h"

#include <fmt/format.h>

#include <thread>
#include <utility>

#include "collectives/thread_world_state.h"

namespace zeroproof::collectives {

namespace {

class ThreadWork : public Work {
  public:
    ThreadWork(std::shared_ptr<ThreadWorldState> world, std::shared_ptr<InFlight> work,
               int world_rank)
        : world_(std::move(world)), work_(std::move(work)), world_rank_(world_rank) {}

    ~ThreadWork() override {
        if (!work_) return;
        try {
            wait();
        } catch (const WorldFailed&) {
            // The failure is kept by the world, and thrown by the rank's next operation.
        }
    }

    void wait() override {
        const auto work = std::move(work_);
        world_->wait(*work, world_rank_);
    }

  private:
    std::shared_ptr<ThreadWorldState> world_;
    std::shared_ptr<InFlight> work_;
    int world_rank_;
};

class ThreadCommunicator : public Communicator {
  public:
    ThreadCommunicator(std::shared_ptr<ThreadWorldState> world, std::shared_ptr<Group> group,
                       int rank)
        : world_(std::move(world)), group_(std::move(group)), rank_(rank) {}

    int rank() const override { return rank_; }
    std::span<const int> world_ranks() const override { return group_->channel.world_ranks; }

    Request start(const Operation& operation) override {
        check(operation, rank_, size());
        return Request(
            std::make_unique<ThreadWork>(world_, world_->start(*group_, rank_, operation),
                                         world_ranks()[static_cast<std::size_t>(rank_)]));
    }

    std::unique_ptr<Communicator> split(int color, int key) override {
        const SplitGroup split = agree_on_split(*this, color, key);
        const int number = splits_++;
        if (color < 0) return nullptr;
        return std::make_unique<ThreadCommunicator>(
            world_, world_->group({group_->id, number, color}, split.world_ranks), split.rank);
    }

  private:
    std::shared_ptr<ThreadWorldState> world_;
    std::shared_ptr<Group> group_;
    int rank_;
    int splits_ = 0;
};

}  // namespace

ThreadWorld::ThreadWorld(int ranks, std::chrono::milliseconds timeout) {
    if (ranks < 1) throw std::invalid_argument(fmt::format("a world of {} ranks", ranks));
    state_ = std::make_shared<ThreadWorldState>(ranks, timeout);
}

ThreadWorld::~ThreadWorld() = default;

std::unique_ptr<WorldFailure> ThreadWorld::run(const std::function<void(Communicator&)>& body) {
    const auto run_rank = [&](int rank) {
        try {
            ThreadCommunicator world(state_, state_->group({-1, 0, 0}, {}), rank);
            body(world);
        } catch (const WorldFailed&) {
            // Somebody else's failure, kept already.
        } catch (const std::exception& error) {
            state_->rank_threw(rank, error.what(), std::current_exception());
        } catch (...) {
            state_->rank_threw(rank, "something that is no std::exception",
                               std::current_exception());
        }
        state_->end(rank);
    };
    {
        std::vector<std::jthread> threads;
        for (int rank = 0; rank < static_cast<int>(state_->ranks()); ++rank)
            threads.emplace_back(run_rank, rank);
    }
    return state_->take_failure();
}

}  // namespace zeroproof::collectives
