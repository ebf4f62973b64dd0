#include "collectives/metered.h"

#include <algorithm>

namespace zeroproof::collectives {

std::size_t Meter::in_flight(Traffic traffic) const {
    return static_cast<std::size_t>(std::ranges::count_if(records_, [&](const auto& record) {
        return record.traffic == traffic && !record.awaited;
    }));
}

class MeteredWork : public Work {
  public:
    MeteredWork(Request inner, Meter& meter, std::size_t index)
        : inner_(std::move(inner)), meter_(meter), index_(index) {}

    void wait() override {
        inner_.wait();
        CollectiveRecord& record = meter_.records_[index_];
        record.ended = CollectiveRecord::Clock::now();
        record.awaited = true;
    }

  private:
    Request inner_;
    Meter& meter_;
    std::size_t index_;
};

Request MeteredCommunicator::start(const Operation& operation) {
    CollectiveRecord record;
    record.rank = world_ranks()[static_cast<std::size_t>(rank())];
    record.sequence = sequence_++;
    record.group.assign(world_ranks().begin(), world_ranks().end());
    record.op = operation.op;
    record.in_elements = operation.in_elements;
    record.out_elements = operation.out_elements;
    record.type = operation.type;
    record.reduction = operation.reduction;
    record.peer = operation.peer;
    record.phase = meter_.ledger_.phase();
    record.traffic = traffic_;
    record.issued = CollectiveRecord::Clock::now();
    // Written down before it starts: evidence of an operation that fails is evidence too.
    meter_.records_.push_back(std::move(record));
    const std::size_t index = meter_.records_.size() - 1;
    return Request(std::make_unique<MeteredWork>(inner_->start(operation), meter_, index));
}

std::unique_ptr<Communicator> MeteredCommunicator::split(int color, int key) {
    auto group = inner_->split(color, key);
    if (!group) return nullptr;
    return std::make_unique<MeteredCommunicator>(std::move(group), traffic_, meter_);
}

}  // namespace zeroproof::collectives
