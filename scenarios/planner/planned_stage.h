// The bytes of a stage of ZeRO-DP, as the specification lays parameters out, without the
// parameters.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "memory/formulas.h"
#include "scenarios/planner/planned_bytes.h"

namespace zeroproof::scenarios {

struct PlannedParameter {
    std::size_t elements = 0;
    bool trainable = true;
    std::string name{};
    std::vector<std::size_t> shape{};
    bool is_shard = false;  // of a weight that is cut over tensor-parallel ranks
};

// Parameters, and the units that use them in the order of the forward pass.
struct PlannedModel {
    std::vector<PlannedParameter> parameters;
    std::vector<std::vector<std::size_t>> units;
};

struct StageOptions {
    int stage = 0;
    std::size_t ranks = 1;  // data-parallel
    memory::DType type = memory::DType::fp32;
    std::size_t bucket_elements = 1 << 20;
    bool overlap = true;
    bool prefetch = true;
};

// Takes the model states when it is made. Then it is told what a stage is told, by the loop that
// trains, and takes and returns what the stage would:
//   gather    stage 3: the weights of the unit and, with prefetch, of the next
//   accept    stages 2 and 3: the buckets that fill, and one that travels with the part of it that
//             is received
class PlannedStage {
  public:
    // `model` outlives this; `ledger` outlives it too.
    PlannedStage(const PlannedModel& model, const StageOptions& options, memory::Ledger& ledger);

    void gather(std::size_t unit);
    void prefetch(std::size_t unit);
    void release(std::size_t unit);
    void begin_backward();
    // The gradients of a unit, by which they are live from its backward pass until they are
    // accepted.
    std::vector<PlannedBytes> unit_gradients(std::size_t unit) const;
    void accept(std::size_t unit);
    void end_backward();

    // What the partition spans, for the formulas.
    const memory::Counts& counts() const { return counts_; }

  private:
    // Parameters that are partitioned together, end to end.
    struct Set {
        bool trainable = true;
        std::vector<std::size_t> users;
        std::vector<std::size_t> members;
        std::size_t elements = 0;
        std::size_t padded = 0;
        int holders = 0;
        PlannedBytes whole;  // its gathered weights
    };
    using BucketId = std::pair<std::size_t, std::size_t>;  // set and bucket
    // Buckets that are complete at the same time travel the last first.
    struct Sooner {
        bool operator()(const BucketId& a, const BucketId& b) const {
            return a.first != b.first ? a.first < b.first : a.second > b.second;
        }
    };
    struct Travelling {
        PlannedBytes bucket;
        PlannedBytes received;
    };

    void lay_out();
    void take_states();
    std::size_t bucket_bytes(BucketId id) const;
    std::vector<std::size_t> sets_of(std::size_t unit) const;
    std::vector<BucketId> buckets_of(std::size_t parameter) const;
    void open(BucketId id);
    void send(BucketId id);

    const PlannedModel& model_;
    StageOptions options_;
    memory::Ledger& ledger_;
    std::size_t width_;
    std::size_t bucket_elements_;
    memory::Counts counts_{0, 0, 0, 0};
    std::vector<Set> sets_;
    std::vector<std::pair<std::size_t, std::size_t>>
        places_;  // by parameter: set and first element
    std::vector<PlannedBytes> states_;
    std::optional<std::size_t> prefetched_;
    std::map<BucketId, int, Sooner> uses_;
    std::map<BucketId, int, Sooner> uses_left_;
    std::map<BucketId, PlannedBytes, Sooner> filling_;
    std::optional<Travelling> travelling_;
};

}  // namespace zeroproof::scenarios
