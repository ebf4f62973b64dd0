// A communicator that makes races certain. It keeps every promise of `Communicator` and nothing
// beyond: whoever relies on more reads poison or is written down.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "collectives/communicator.h"

namespace zeroproof::collectives {

enum class RaceKind {
    input_touched,   // the input was written, or freed, before the wait
    output_touched,  // the output was written before the wait
    not_awaited      // the request ended without a wait
};
std::string_view name_of(RaceKind kind);

struct Race {
    RaceKind kind;
    std::string operation;  // describe() of it
    std::uint64_t number;   // place among this communicator's operations
    std::size_t element;    // the first touched
};

// From start to wait the output is full of poison. The operation works on private copies, which the
// wait moves to the output: outputs appear only at the wait, in the order of the waits, whenever
// and in whatever order the operations themselves complete. Ranks are delayed at random points,
// from `seed`. Buffers must stay mapped until their requests end, even if freed: use a space that
// quarantines. `races` outlives the communicator.
class AdversarialCommunicator : public Communicator {
  public:
    AdversarialCommunicator(std::unique_ptr<Communicator> inner, std::uint64_t seed,
                            std::vector<Race>& races)
        : inner_(std::move(inner)), random_(seed), races_(races) {}

    int rank() const override { return inner_->rank(); }
    std::span<const int> world_ranks() const override { return inner_->world_ranks(); }
    Request start(const Operation& operation) override;
    std::unique_ptr<Communicator> split(int color, int key) override;

  private:
    std::unique_ptr<Communicator> inner_;
    std::mt19937_64 random_;
    std::vector<Race>& races_;
    std::uint64_t number_ = 0;
};

}  // namespace zeroproof::collectives
