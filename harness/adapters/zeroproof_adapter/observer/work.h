// An operation in flight, as torch sees it.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>
#include <vector>

#include "flight.h"
#include "recorder.h"

namespace zeroproof::observer {

// Runs tasks on threads of their own: a task completes a future, whose callbacks may wait for the
// next one.
class Deliverer {
  public:
    ~Deliverer() { drain(); }

    void run(std::function<void()> task) {
        auto done = std::make_shared<std::atomic<bool>>(false);
        std::thread thread([done, task = std::move(task)]() mutable {
            task();
            // What the task holds may take Python's lock to drop; once it is done, nothing may.
            task = nullptr;
            *done = true;
        });
        const std::lock_guard lock(mutex_);
        running_.remove_if([](Running& other) {
            if (!*other.done) return false;
            other.thread.join();
            return true;
        });
        running_.push_back({std::move(thread), std::move(done)});
    }

    // Returns when no task is left. Not to be called with Python's lock.
    void drain() {
        for (;;) {
            std::list<Running> some;
            {
                const std::lock_guard lock(mutex_);
                some.swap(running_);
            }
            if (some.empty()) return;
            for (Running& one : some) one.thread.join();
        }
    }

  private:
    struct Running {
        std::thread thread;
        std::shared_ptr<std::atomic<bool>> done;
    };

    std::mutex mutex_;
    std::list<Running> running_;
};

// Drained when Python ends, as callbacks need it; its own end finds nothing left.
inline Deliverer& deliverer() {
    static Deliverer the;
    return the;
}

class ObservedWork : public c10d::Work {
  public:
    // `flight` is null unless the surroundings are hostile. `world_ranks` are those of the group if
    // the peer is still to be learnt, and else empty.
    ObservedWork(c10::intrusive_ptr<c10d::Work> inner, std::vector<Recorder::Handle> records,
                 std::shared_ptr<Flight> flight, std::vector<int64_t> world_ranks)
        : inner_(std::move(inner)),
          records_(std::move(records)),
          flight_(std::move(flight)),
          world_ranks_(std::move(world_ranks)) {}

    ~ObservedWork() override {
        // A rank that ends by an exception waits for nothing more, which is no race.
        if (flight_ && !awaited_ && std::uncaught_exceptions() == 0)
            for (const auto& record : records_) recorder().note(kNotAwaited, *record, 0);
    }

    bool wait(std::chrono::milliseconds timeout) override {
        set_awaited();
        if (flight_) recorder().pause(kDelay);
        if (!inner_->wait(timeout)) return false;
        if (!world_ranks_.empty()) {
            const auto source = static_cast<std::size_t>(inner_->sourceRank());
            recorder().set_peer(records_, world_ranks_.at(source));
        }
        land();
        return true;
    }

    // Whoever sees that it completed may use the output, with or without a wait.
    bool isCompleted() override {
        if (!inner_->isCompleted()) return false;
        set_awaited();
        if (inner_->isSuccess()) land();
        return true;
    }

    void synchronize() override {
        inner_->synchronize();
        set_awaited();
        land();
    }

    // To take the future counts as to wait: torch does not show who waits for it.
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
        set_awaited();
        const std::lock_guard lock(future_mutex_);
        if (!future_) future_ = flight_ ? late_future() : followed_future();
        return future_;
    }

    std::vector<at::Tensor> result() override {
        return flight_ && flight_->has_landed() ? flight_->outputs() : inner_->result();
    }

    bool isSuccess() const override { return inner_->isSuccess(); }
    std::exception_ptr exception() const override { return inner_->exception(); }
    int sourceRank() const override { return inner_->sourceRank(); }
    void abort() override { inner_->abort(); }
    c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override {
        return inner_->getFutureResult();
    }
    float getDuration() const override { return inner_->getDuration(); }
    uint64_t getSequencenumber() const override { return inner_->getSequencenumber(); }

  private:
    static constexpr std::chrono::microseconds kDelay{50};
    static constexpr std::chrono::microseconds kLateDelay{300};

    void set_awaited() {
        if (!awaited_.exchange(true)) recorder().set_awaited(records_);
    }

    void land() {
        if (flight_) flight_->land();
        recorder().set_landed(records_);
    }

    // One of its own, as the inner one wakes its waiters before it calls back.
    c10::intrusive_ptr<c10::ivalue::Future> followed_future() {
        const auto inner = inner_->getFuture();
        return inner->then(
            [records = records_](c10::ivalue::Future& ended) {
                at::IValue value = ended.value();  // throws if it failed
                recorder().set_landed(records);
                return value;
            },
            inner->elementType());
    }

    c10::intrusive_ptr<c10::ivalue::Future> late_future() {
        auto future =
            c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
        // The thread shares what it needs: this object may be gone before the operation ends.
        deliverer().run([future, inner = inner_, flight = flight_, records = records_] {
            try {
                inner->wait();
                recorder().pause(kLateDelay);
                flight->land();
            } catch (...) {
                future->setError(std::current_exception());
                return;
            }
            recorder().set_landed(records);
            future->markCompleted(flight->outputs());
        });
        return future;
    }

    c10::intrusive_ptr<c10d::Work> inner_;
    std::vector<Recorder::Handle> records_;
    std::shared_ptr<Flight> flight_;
    std::vector<int64_t> world_ranks_;
    std::atomic<bool> awaited_{false};
    std::mutex future_mutex_;
    c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace zeroproof::observer
