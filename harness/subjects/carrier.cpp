#include "harness/subjects/carrier.h"

#include "collectives/algorithms/algorithm_communicator.h"

namespace zeroproof::harness {

void with_carrier(const Carrier& carrier, collectives::Communicator& world,
                  const std::function<void(collectives::Communicator&)>& body) {
    if (carrier.algorithms == nullptr) return body(world);
    const bool divides = world.size() % carrier.ranks_per_node == 0;
    collectives::Progress progress;
    collectives::LinkElements sent{};
    collectives::AlgorithmCommunicator group(world.split(0, world.rank()), carrier.algorithms,
                                             divides ? carrier.ranks_per_node : world.size(),
                                             progress, sent);
    body(group);
}

}  // namespace zeroproof::harness
