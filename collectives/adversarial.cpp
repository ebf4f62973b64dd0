#include "collectives/adversarial.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <thread>

#include "memory/space.h"

namespace zeroproof::collectives {

namespace {

using Bytes = std::vector<std::byte>;

class AdversarialWork : public Work {
  public:
    AdversarialWork(const Operation& operation, int rank, std::uint64_t number, Communicator& inner,
                    std::vector<Race>& races)
        : operation_(operation),
          number_(number),
          races_(races),
          // Only the root's input of a broadcast is one, and in place it is no output.
          reads_input_(operation.op != Op::broadcast || operation.peer == rank),
          writes_output_(operation.op != Op::broadcast || operation.peer != rank ||
                         operation.output != operation.input),
          input_(reads_input_ ? copy_of_input() : Bytes(operation.in_bytes())),
          output_(operation.op == Op::broadcast ? input_ : Bytes(operation.out_bytes())) {
        Operation staged = operation;
        staged.input = operation.op == Op::broadcast ? output_.data() : input_.data();
        staged.output = output_.data();
        if (writes_output_ && !output_.empty())
            std::memset(operation.output, std::to_integer<int>(memory::kPoison), output_.size());
        // What both lie in while in flight, in place or not.
        if (reads_input_) flying_input_ = copy_of_input();
        request_ = inner.start(staged);
    }

    ~AdversarialWork() override {
        // A rank that ends by an exception waits for nothing more, which is no race.
        if (request_.in_flight() && std::uncaught_exceptions() == 0) note(RaceKind::not_awaited, 0);
    }

    void wait() override {
        request_.wait();
        if (reads_input_) compare(RaceKind::input_touched, flying_input_, operation_.input);
        if (writes_output_) {
            const Bytes poison(output_.size(), memory::kPoison);
            compare(RaceKind::output_touched, poison, operation_.output);
            std::copy(output_.begin(), output_.end(), operation_.output);
        }
    }

  private:
    Bytes copy_of_input() const {
        return {operation_.input, operation_.input + operation_.in_bytes()};
    }

    void compare(RaceKind kind, const Bytes& expected, const std::byte* seen) {
        const auto at = std::mismatch(expected.begin(), expected.end(), seen).first;
        if (at != expected.end())
            note(kind, static_cast<std::size_t>(at - expected.begin()) /
                           memory::size_of(operation_.type));
    }

    void note(RaceKind kind, std::size_t element) {
        races_.push_back({kind, describe(operation_), number_, element});
    }

    Operation operation_;
    std::uint64_t number_;
    std::vector<Race>& races_;
    bool reads_input_;
    bool writes_output_;
    Bytes input_;
    Bytes output_;
    Bytes flying_input_;
    Request request_;  // ends before the memory it works on
};

}  // namespace

std::string_view name_of(RaceKind kind) {
    constexpr std::string_view names[] = {"input touched in flight", "output touched in flight",
                                          "never waited for"};
    return names[static_cast<std::size_t>(kind)];
}

Request AdversarialCommunicator::start(const Operation& operation) {
    check(operation, rank(), size());
    for (auto delays = random_() % 4; delays > 0; --delays) std::this_thread::yield();
    return Request(
        std::make_unique<AdversarialWork>(operation, rank(), number_++, *inner_, races_));
}

std::unique_ptr<Communicator> AdversarialCommunicator::split(int color, int key) {
    auto group = inner_->split(color, key);
    if (!group) return nullptr;
    return std::make_unique<AdversarialCommunicator>(std::move(group), random_(), races_);
}

}  // namespace zeroproof::collectives
