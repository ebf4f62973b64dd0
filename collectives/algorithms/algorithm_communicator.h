// A communicator whose collectives are made of sends and receives of another one.
#pragma once

#include <memory>

#include "collectives/algorithms/carry_out.h"
#include "collectives/algorithms/progress.h"

namespace zeroproof::collectives {

// Collectives go by the algorithms of a set, or where there is none by the inner communicator's own
// ones. `progress` carries out everything, so that it goes on while the rank computes; one
// operation after the other, in the order in which the rank starts them, whatever group they belong
// to. `progress` and `sent` outlive it, and are the rank's own.
//
// World rank r stands on node r / ranks_per_node. Throws std::invalid_argument for a group that
// does not have equally many ranks on each of its nodes, node after node.
class AlgorithmCommunicator : public Communicator {
  public:
    AlgorithmCommunicator(std::unique_ptr<Communicator> inner, const AlgorithmSet* set,
                          int ranks_per_node, Progress& progress, LinkElements& sent);
    ~AlgorithmCommunicator() override { progress_.drain(); }

    int rank() const override { return inner_->rank(); }
    std::span<const int> world_ranks() const override { return inner_->world_ranks(); }
    Request start(const Operation& operation) override;
    std::unique_ptr<Communicator> split(int color, int key) override;

  private:
    std::unique_ptr<Communicator> inner_;
    const AlgorithmSet* set_;
    int ranks_per_node_;
    int group_ranks_per_node_;
    Progress& progress_;
    // Used by the thread of `progress_` alone:
    LinkElements& sent_;
    Workspace workspace_;
};

}  // namespace zeroproof::collectives
