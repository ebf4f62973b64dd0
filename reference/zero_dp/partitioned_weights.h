// Each rank keeps the weights that it owns; a unit's are gathered before use and freed after: stage
// 3 (ZeRO paper, section 5.3).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "reference/stage.h"

namespace zeroproof::reference {

class PartitionedWeights {
  public:
    // `trainable` outlives this.
    PartitionedWeights(const Setup& setup, std::span<const FlatParameters> trainable);

    void gather(std::size_t unit);
    void prefetch(std::size_t unit);
    void release(std::size_t unit);
    std::vector<ConstTensor> of_unit(std::size_t unit);
    // A slice of a trainable parameter.
    Tensor of_slice(const Slice& slice);
    void read(std::size_t parameter, std::span<float> values);
    void write_frozen(std::size_t parameter, std::span<const float> values);

  private:
    // The weights of one flat range. `holders` is a reference count, of units and of a prefetch, so
    // that weights which several units share, or which were prefetched, are gathered once.
    struct Part {
        const FlatParameters* flat;
        memory::Buffer shard;
        memory::Buffer whole;  // while somebody holds it
        int holders = 0;
        std::vector<collectives::Request> gathering;  // end before the memory that they use
    };

    std::size_t part_of(std::size_t parameter) const;
    std::vector<std::size_t> parts_of_unit(std::size_t unit) const;
    void start_gathering(Part& part);
    void hold(std::size_t part);
    void let_go(std::size_t part);
    ConstTensor whole(std::size_t parameter);

    Setup setup_;
    std::vector<FlatParameters> frozen_;
    std::vector<Part> parts_;  // the trainable ones first, as given
    std::optional<std::size_t> prefetched_unit_;
};

}  // namespace zeroproof::reference
