// What the ranks of a benchmark tell each other beside what they measure.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/communicator.h"

namespace zeroproof::harness {

// Something that was measured is not what it must be. Thrown on every rank alike.
class WrongResult : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Every call is collective.
class Team {
  public:
    explicit Team(collectives::Communicator& world) : world_(world) {}

    collectives::Communicator& world() { return world_; }
    int rank() const { return world_.rank(); }
    int ranks() const { return world_.size(); }
    bool leads() const { return rank() == 0; }

    // Returns once every rank has called it.
    void barrier();
    // By rank.
    std::vector<double> gather(double mine);
    std::vector<std::uint64_t> gather(std::uint64_t mine);
    std::uint64_t sum(std::uint64_t mine);
    // What rank 0 says.
    double leaders(double mine);
    // Throws WrongResult if any rank has something to complain of, with the words of the first.
    void throw_if_any(const std::string& complaint);
    // The first rank whose text differs from that of rank 0, or -1.
    int first_to_differ(std::string_view text);

  private:
    collectives::Communicator& world_;
};

}  // namespace zeroproof::harness
