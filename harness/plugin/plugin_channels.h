// Communicators and requests of an engine, by their handles.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "collectives/adversarial.h"
#include "collectives/metered.h"
#include "harness/plugin/zeroproof.h"

namespace zeroproof::harness {

// Throws PluginFault for what breaks the rules. Of the thread of one rank.
class PluginChannels {
  public:
    // All three outlive it.
    PluginChannels(collectives::Meter& meter, std::vector<collectives::Race>& races)
        : meter_(meter), races_(races) {}

    // A channel over all ranks; collective. Hostile ones get their delays from `seed`.
    zeroproof_communicator open(collectives::Communicator& world, collectives::Traffic traffic,
                                bool hostile, std::uint64_t seed);
    zeroproof_request start(zeroproof_communicator communicator,
                            const zeroproof_operation& operation);
    void wait(zeroproof_request request);
    zeroproof_communicator split(zeroproof_communicator communicator, int color, int key);
    const collectives::Communicator& at(zeroproof_communicator communicator) const;
    void close(zeroproof_communicator communicator);
    // Ends what is in flight, and closes all.
    void close_all();

  private:
    zeroproof_communicator keep(std::unique_ptr<collectives::Communicator> communicator);

    collectives::Meter& meter_;
    std::vector<collectives::Race>& races_;
    std::map<zeroproof_communicator, std::unique_ptr<collectives::Communicator>> communicators_;
    std::map<zeroproof_request, collectives::Request> requests_;
};

}  // namespace zeroproof::harness
