// Each rank keeps the gradient of what it owns: stages 2 and 3.
#pragma once

#include <deque>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "reference/bucket_tracker.h"
#include "reference/stage.h"

namespace zeroproof::reference {

// Gradients fill buckets. A full bucket is reduce-scattered, each rank adds its part to its shard,
// and the bucket is freed (ZeRO paper, section 5.2). While one bucket travels the next one fills.
class PartitionedGradients {
  public:
    // `flats` outlive this.
    PartitionedGradients(const Setup& setup, std::span<const FlatParameters> flats);

    void zero();
    void begin_backward();
    void accept(std::size_t unit, std::span<const Tensor> gradients);
    void end_backward();
    Tensor of_slice(const Slice& slice);

  private:
    struct Travelling {
        BucketId id;
        memory::Buffer bucket;
        memory::Buffer reduced;
        collectives::Request request;  // ends before the memory that it uses
    };

    void add(std::size_t parameter, ConstTensor gradient);
    memory::Buffer& open(BucketId id);
    void send(BucketId id);
    void settle_oldest();

    Setup setup_;
    std::span<const FlatParameters> flats_;
    std::vector<memory::Buffer> shards_;  // by flat
    BucketTracker tracker_;
    std::map<std::pair<std::size_t, std::size_t>, memory::Buffer> filling_;  // by flat and bucket
    std::deque<Travelling> travelling_;
};

}  // namespace zeroproof::reference
