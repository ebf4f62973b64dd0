#include "collectives/algorithms/algorithm_communicator.h"

#include <fmt/format.h>

#include <utility>

namespace zeroproof::collectives {

namespace {

// How many ranks of the group each of its nodes has.
int ranks_per_node_of(std::span<const int> world_ranks, int ranks_per_node) {
    std::vector<int> counts;
    int last_node = -1;
    for (const int rank : world_ranks) {
        const int node = rank / ranks_per_node;
        if (node != last_node) counts.push_back(0);
        ++counts.back();
        last_node = node;
    }
    for (const int count : counts)
        if (count != counts.front())
            throw std::invalid_argument(fmt::format(
                "a group with {} ranks on one node and {} on another", counts.front(), count));
    return counts.front();
}

// A send or a receive: begun by one job, waited for by another, so that several are under way.
class PairWork : public Work {
  public:
    PairWork(Progress& progress, Communicator& inner, const Operation& operation)
        : progress_(progress), started_(std::make_shared<Request>()) {
        begun_ = progress_.begin(
            [&inner, operation, started = started_] { *started = inner.start(operation); });
    }
    ~PairWork() override {
        if (!started_) return;
        try {
            wait();
        } catch (const std::exception&) {
            // Kept by the progress, and thrown by the rank's next operation.
        }
    }
    void wait() override {
        const auto started = std::move(started_);
        begun_.wait();
        progress_.begin([started] { started->wait(); }).wait();
    }

  private:
    Progress& progress_;
    std::shared_ptr<Request> started_;
    Request begun_;
};

}  // namespace

AlgorithmCommunicator::AlgorithmCommunicator(std::unique_ptr<Communicator> inner,
                                             const AlgorithmSet* set, int ranks_per_node,
                                             Progress& progress, LinkElements& sent)
    : inner_(std::move(inner)),
      set_(set),
      ranks_per_node_(ranks_per_node),
      group_ranks_per_node_(ranks_per_node_of(inner_->world_ranks(), ranks_per_node)),
      progress_(progress),
      sent_(sent) {}

Request AlgorithmCommunicator::start(const Operation& operation) {
    check(operation, rank(), size());
    if (operation.op == Op::send || operation.op == Op::receive)
        return Request(std::make_unique<PairWork>(progress_, *inner_, operation));
    if (set_ == nullptr)
        return progress_.begin([this, operation] { inner_->start(operation).wait(); });
    const Algorithm& algorithm = set_->for_op(operation.op);
    return progress_.begin([this, operation, &algorithm] {
        carry_out(*inner_, operation, algorithm, group_ranks_per_node_, workspace_, sent_);
    });
}

std::unique_ptr<Communicator> AlgorithmCommunicator::split(int color, int key) {
    progress_.drain();  // nothing else may use the transport meanwhile
    auto group = inner_->split(color, key);
    if (!group) return nullptr;
    return std::make_unique<AlgorithmCommunicator>(std::move(group), set_, ranks_per_node_,
                                                   progress_, sent_);
}

}  // namespace zeroproof::collectives
