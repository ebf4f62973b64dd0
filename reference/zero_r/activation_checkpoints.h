// Where the checkpoints of activations lie from forward until backward (ZeRO paper, sections 4.2.1
// and 6.1): whole, or partitioned over the ranks that would all keep the same (Pa), on the device
// or on the host (Pa+cpu), each in a buffer of its own or all in one (MD).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "collectives/communicator.h"
#include "memory/space.h"
#include "reference/model.h"
#include "reference/zero_r/copy_stream.h"

namespace zeroproof::reference {

struct CheckpointPlacement {
    // Pa: each rank of this group keeps its N-th part of a checkpoint, which is the same on all of
    // them, and an all-gather brings it back.
    collectives::Communicator* partition_over = nullptr;
    // Pa+cpu: what a rank keeps is moved here, and back before it is needed, while it computes.
    memory::Space* host = nullptr;
    // MD: room for all checkpoints is taken once, in one piece, so that what lives long does not
    // lie between what lives short.
    bool contiguous = false;
};

class ActivationCheckpoints {
  public:
    // For `count` checkpoints of so many elements each.
    ActivationCheckpoints(std::size_t count, std::size_t elements, DType type,
                          memory::Space& device, const CheckpointPlacement& placement);

    std::size_t count() const { return kept_.size(); }
    // What a rank keeps of each: all of it, or with Pa ceil(elements / N), the last padded with
    // zeros.
    std::size_t part_elements() const { return part_elements_; }

    // Copies what `activation` holds; the same on all ranks of the group.
    void put(std::size_t index, ConstTensor activation);
    // Promises that `index` is taken next, so that its way from the host may begin.
    void prefetch(std::size_t index);
    // The checkpoint, whole again, perhaps with padding behind it. It is kept no longer. Collective
    // over the group.
    memory::Buffer take(std::size_t index);
    // Returns once nothing is on its way to the host.
    void settle();

    // What this rank keeps of a checkpoint, wherever it is. Waits for what is on its way.
    ConstTensor part(std::size_t index);
    // Whether one was sent on its way, to the host or back, and not yet waited for.
    bool is_moving() const { return leaving_ || returning_; }

  private:
    // A copy between the device and the host, and the device's end of it.
    struct Moving {
        std::size_t index;
        memory::Buffer on_device;
        std::uint64_t copy;
    };

    std::size_t parts() const;
    memory::Space& home() { return placement_.host != nullptr ? *placement_.host : device_; }
    memory::Buffer new_part(memory::Space& space, memory::Category category) const;
    std::byte* room(std::size_t index);
    void forget(std::size_t index);

    std::size_t elements_;
    DType type_;
    memory::Space& device_;
    CheckpointPlacement placement_;
    std::size_t part_elements_ = 0;
    memory::Buffer arena_;              // of all parts, with MD
    std::vector<memory::Buffer> kept_;  // by index, without
    std::optional<Moving> leaving_;
    std::optional<Moving> returning_;
    std::unique_ptr<CopyStream> stream_;  // ends before the memory that it copies
};

}  // namespace zeroproof::reference
