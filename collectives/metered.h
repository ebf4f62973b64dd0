// A communicator that writes down what goes through it.
#pragma once

#include <memory>
#include <vector>

#include "collectives/record.h"

namespace zeroproof::collectives {

// The operations of one rank, in the order in which it started them. The phase of each is the one
// that the rank's ledger is in.
class Meter {
  public:
    explicit Meter(const memory::Ledger& ledger) : ledger_(ledger) {}
    const std::vector<CollectiveRecord>& records() const { return records_; }
    // Operations of that class started and not yet waited for.
    std::size_t in_flight(Traffic traffic) const;

  private:
    friend class MeteredCommunicator;
    friend class MeteredWork;
    const memory::Ledger& ledger_;
    std::vector<CollectiveRecord> records_;
};

// Forwards to `inner`. `meter` must outlive it and every request of it.
class MeteredCommunicator : public Communicator {
  public:
    MeteredCommunicator(std::unique_ptr<Communicator> inner, Traffic traffic, Meter& meter)
        : inner_(std::move(inner)), traffic_(traffic), meter_(meter) {}

    int rank() const override { return inner_->rank(); }
    std::span<const int> world_ranks() const override { return inner_->world_ranks(); }
    Request start(const Operation& operation) override;
    std::unique_ptr<Communicator> split(int color, int key) override;

  private:
    std::unique_ptr<Communicator> inner_;
    Traffic traffic_;
    Meter& meter_;
    std::uint64_t sequence_ = 0;
};

}  // namespace zeroproof::collectives
