// Checkpoints of activations, wherever they lie: what comes back, and how many bytes they take
// where and when.
#include "reference/zero_r/activation_checkpoints.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "collectives/test_support.h"

namespace zeroproof::reference {
namespace {

using collectives::Communicator;
using memory::Category;
using Bytes = std::vector<std::byte>;

constexpr std::size_t kCount = 4;

struct Placement {
    bool partitioned;
    bool offloaded;
    bool contiguous;
};

std::vector<Placement> all_placements() {
    std::vector<Placement> all;
    for (const bool partitioned : {false, true})
        for (const bool offloaded : {false, true})
            for (const bool contiguous : {false, true})
                all.push_back({partitioned, offloaded, contiguous});
    return all;
}

// Every bit pattern, the NaNs too: what is kept is bytes and not numbers.
Bytes activation(std::size_t bytes, std::size_t index) {
    Bytes all(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
        all[i] = static_cast<std::byte>((i * 41 + index * 83 + 1) & 0xFF);
    return all;
}

// Checkpoints of one rank and the memories that they lie in. What is returned is poisoned and not
// used again, so that a late reader finds no checkpoint.
struct Rank {
    Placement placement;
    std::size_t parts;
    std::size_t place;  // in the group
    std::size_t elements;
    DType type;
    memory::Space device{"device", memory::Space::kUnlimited, memory::Returned::quarantined};
    memory::Space host{"host", memory::Space::kUnlimited, memory::Returned::quarantined};
    std::optional<ActivationCheckpoints> checkpoints;

    Rank(const Placement& where, Communicator& group, std::size_t count, DType of)
        : placement(where),
          parts(where.partitioned ? static_cast<std::size_t>(group.size()) : 1),
          place(where.partitioned ? static_cast<std::size_t>(group.rank()) : 0),
          elements(count),
          type(of) {
        checkpoints.emplace(
            kCount, elements, type, device,
            CheckpointPlacement{where.partitioned ? &group : nullptr,
                                where.offloaded ? &host : nullptr, where.contiguous});
    }

    std::size_t width() const { return memory::size_of(type); }
    std::size_t part_bytes() const { return (elements + parts - 1) / parts * width(); }
    // The whole checkpoint, padded with zeros to a multiple of the ranks.
    Bytes padded(std::size_t index) const {
        Bytes whole = activation(elements * width(), index);
        whole.resize(part_bytes() * parts);
        return whole;
    }
    // From memory that is overwritten at once: what is put must have been copied.
    void put(std::size_t index, std::size_t content) {
        Bytes source = activation(elements * width(), content);
        checkpoints->put(index, {type, source.data(), elements});
        std::ranges::fill(source, memory::kPoison);
    }
    void put(std::size_t index) { put(index, index); }
    void expect_taken(std::size_t index, std::size_t content) {
        const memory::Buffer taken = checkpoints->take(index);
        EXPECT_EQ(taken.type(), type);
        EXPECT_EQ(Bytes(taken.data(), taken.data() + taken.size_bytes()), padded(content)) << index;
    }
    void expect_taken(std::size_t index) { expect_taken(index, index); }
    void expect_bytes(const char* when, std::size_t kept, std::size_t moving, std::size_t whole) {
        const auto live = [](const memory::Space& space, Category category) {
            return space.ledger().live_bytes(category);
        };
        memory::Space& home = placement.offloaded ? host : device;
        EXPECT_EQ(live(home, Category::checkpoint), kept) << when;
        EXPECT_EQ(home.ledger().live_bytes() + (placement.offloaded ? moving + whole : 0),
                  kept + moving + whole)
            << when;
        EXPECT_EQ(live(device, Category::buffer), moving) << when;
        EXPECT_EQ(checkpoints->is_moving(), moving > 0) << when;
        EXPECT_EQ(live(device, Category::activation), whole) << when;
        EXPECT_EQ(device.ledger().live_bytes(), moving + whole + (placement.offloaded ? 0 : kept))
            << when;
    }
};

// Runs `body` for each placement, number of ranks, number of elements around it and type.
void for_each_rank(const std::function<void(Rank&)>& body) {
    for (const Placement& placement : all_placements())
        for (const std::size_t ranks : {1u, 2u, 3u, 4u})
            for (const std::size_t elements :
                 {std::size_t{1}, ranks - 1, ranks, ranks + 1, 10 * ranks + 3})
                for (const DType type : {DType::bf16, DType::fp32}) {
                    if (elements == 0) continue;
                    SCOPED_TRACE(testing::Message()
                                 << ranks << " ranks, " << elements << " elements"
                                 << (placement.partitioned ? ", Pa" : "")
                                 << (placement.offloaded ? ", on the host" : "")
                                 << (placement.contiguous ? ", contiguous" : ""));
                    collectives::run_ranks(static_cast<int>(ranks), [&](Communicator& group) {
                        Rank rank(placement, group, elements, type);
                        body(rank);
                    });
                }
}

// Catches a part of another rank or checkpoint, an end that is cut off, padding that is not zero,
// and a copy that is read before it has arrived. In the order of backward, and in others.
TEST(ActivationCheckpoints, WhatIsPutIsTakenBackBitForBit) {
    const std::vector<std::vector<std::size_t>> orders{
        {3, 2, 1, 0}, {0, 1, 2, 3}, {2, 0, 3, 1}, {1}, {0, 3}};
    for_each_rank([&](Rank& rank) {
        EXPECT_EQ(rank.checkpoints->count(), kCount);
        for (const bool prefetched : {false, true})
            for (const std::vector<std::size_t>& order : orders) {
                for (std::size_t index = 0; index < kCount; ++index) rank.put(index);
                for (std::size_t i = 0; i < order.size(); ++i) {
                    rank.expect_taken(order[i]);
                    if (prefetched && i + 1 < order.size())
                        rank.checkpoints->prefetch(order[i + 1]);
                }
            }
    });
}

// The N-th part in order, the last padded with zeros; whole where nothing is partitioned.
TEST(ActivationCheckpoints, ARankKeepsItsPart) {
    for_each_rank([](Rank& rank) {
        EXPECT_EQ(rank.checkpoints->part_elements() * rank.width(), rank.part_bytes());
        for (std::size_t index = 0; index < kCount; ++index) rank.put(index);
        for (std::size_t index = 0; index < kCount; ++index) {
            const ConstTensor part = rank.checkpoints->part(index);
            const Bytes whole = rank.padded(index);
            const auto begin =
                whole.begin() + static_cast<std::ptrdiff_t>(rank.place * rank.part_bytes());
            EXPECT_EQ(part.type, rank.type);
            EXPECT_EQ(Bytes(part.data, part.data + part.elements * rank.width()),
                      Bytes(begin, begin + static_cast<std::ptrdiff_t>(rank.part_bytes())));
        }
    });
}

// ZeRO paper, section 6.1, to the byte: the part of a checkpoint where it is kept; on the device of
// a rank that keeps it on the host, no more than one part that travels, in either direction; with
// MD, room for all from the beginning to the end. Catches what is kept longer, or twice.
TEST(ActivationCheckpoints, BytesAreWhereTheyAreSaidToBe) {
    for_each_rank([](Rank& rank) {
        const std::size_t part = rank.part_bytes();
        const std::size_t whole = part * rank.parts;
        const std::size_t moving = rank.placement.offloaded ? part : 0;
        const auto kept = [&](std::size_t checkpoints) {
            return (rank.placement.contiguous ? kCount : checkpoints) * part;
        };
        rank.expect_bytes("at first", kept(0), 0, 0);
        for (std::size_t index = 0; index < kCount; ++index) {
            rank.put(index);
            rank.expect_bytes("once put", kept(index + 1), moving, 0);
        }
        rank.checkpoints->settle();
        rank.expect_bytes("once settled", kept(kCount), 0, 0);
        for (std::size_t index = kCount; index-- > 0;) {
            {
                const memory::Buffer taken = rank.checkpoints->take(index);
                rank.expect_bytes("once taken", kept(index), 0, whole);
            }
            rank.expect_bytes("once used", kept(index), 0, 0);
            if (index == 0) break;
            rank.checkpoints->prefetch(index - 1);
            rank.expect_bytes("once prefetched", kept(index), moving, 0);
        }
        EXPECT_EQ(rank.device.ledger().peak_bytes(Category::buffer), moving);
        EXPECT_EQ(rank.device.ledger().peak_bytes(Category::activation), whole);
        EXPECT_EQ(rank.host.ledger().peak_bytes(), rank.placement.offloaded ? kCount * part : 0u);
        rank.checkpoints.reset();
        EXPECT_EQ(rank.device.ledger().live_bytes(), 0u);
        EXPECT_EQ(rank.host.ledger().live_bytes(), 0u);
    });
}

// What is still on its way when a run ends, in either direction. Catches a copy that goes on into
// memory which is gone, and bytes that nobody returns.
TEST(ActivationCheckpoints, NothingLeaksAtAnEarlyEnd) {
    for (const bool returning : {false, true})
        for_each_rank([&](Rank& rank) {
            for (std::size_t index = 0; index < kCount; ++index) rank.put(index);
            if (returning) rank.checkpoints->prefetch(kCount - 1);
            rank.checkpoints.reset();
            EXPECT_EQ(rank.device.ledger().live_bytes(), 0u);
            EXPECT_EQ(rank.host.ledger().live_bytes(), 0u);
        });
}

// Catches a second checkpoint of an index that is kept beside the first, or is not kept.
TEST(ActivationCheckpoints, PutAgainReplaces) {
    for_each_rank([](Rank& rank) {
        for (std::size_t index = 0; index < kCount; ++index) rank.put(index);
        rank.checkpoints->settle();
        const std::size_t on_device = rank.device.ledger().live_bytes();
        const std::size_t on_host = rank.host.ledger().live_bytes();
        rank.put(1, 17);
        rank.checkpoints->settle();
        EXPECT_EQ(rank.device.ledger().live_bytes(), on_device);
        EXPECT_EQ(rank.host.ledger().live_bytes(), on_host);
        rank.expect_taken(2);
        rank.expect_taken(1, 17);
        rank.expect_taken(0);
    });
}

// Steps follow one another for hours.
TEST(ActivationCheckpoints, ManyStepsTakeWhatOneTakes) {
    for (const Placement& placement : all_placements())
        collectives::run_ranks(2, [&](Communicator& group) {
            Rank rank(placement, group, 1001, DType::bf16);
            std::size_t device_peak = 0;
            for (std::size_t step = 0; step < 20; ++step) {
                for (std::size_t index = 0; index < kCount; ++index) rank.put(index, step + index);
                for (std::size_t index = kCount; index-- > 0;) {
                    rank.expect_taken(index, step + index);
                    if (index > 0) rank.checkpoints->prefetch(index - 1);
                }
                if (step == 0) device_peak = rank.device.ledger().peak_bytes();
                EXPECT_EQ(rank.device.ledger().peak_bytes(), device_peak);
            }
        });
}

// Counts the buffers that checkpoints are kept in.
class Kept : public memory::SpaceObserver {
  public:
    std::size_t taken_ever = 0;
    std::map<const std::byte*, std::size_t> live;  // bytes, by address

    void taken(const std::byte* storage, Category category, std::size_t bytes) override {
        if (category != Category::checkpoint) return;
        ++taken_ever;
        live[storage] = bytes;
    }
    void returned(const std::byte* storage) override { live.erase(storage); }
};

// MD: all checkpoints in one piece, end to end, which is taken once and stays. Catches a
// fragmentation of the device's memory by what lives from forward to backward.
TEST(ActivationCheckpoints, ContiguousOnesAreOnePieceForGood) {
    for (const bool offloaded : {false, true}) {
        Kept kept;
        memory::Space device("device");
        memory::Space host("host");
        (offloaded ? host : device).observe(&kept);
        {
            ActivationCheckpoints checkpoints(
                kCount, 10, DType::fp32, device,
                {.host = offloaded ? &host : nullptr, .contiguous = true});
            for (int step = 0; step < 3; ++step) {
                const Bytes source = activation(40, 1);
                for (std::size_t index = 0; index < kCount; ++index)
                    checkpoints.put(index, {DType::fp32, source.data(), 10});
                ASSERT_EQ(kept.live.size(), 1u);
                EXPECT_EQ(kept.live.begin()->second, kCount * 40);
                for (std::size_t index = 0; index < kCount; ++index)
                    EXPECT_EQ(checkpoints.part(index).data, kept.live.begin()->first + index * 40);
                for (std::size_t index = kCount; index-- > 0;) (void)checkpoints.take(index);
            }
        }
        EXPECT_EQ(kept.taken_ever, 1u);
        EXPECT_TRUE(kept.live.empty());
    }
}

// A model without any checkpoint makes this object, too.
TEST(ActivationCheckpoints, NoneTakeNothing) {
    for (const bool contiguous : {false, true}) {
        memory::Space device("device");
        memory::Space host("host");
        ActivationCheckpoints checkpoints(0, 100, DType::fp32, device,
                                          {.host = &host, .contiguous = contiguous});
        EXPECT_EQ(checkpoints.count(), 0u);
        checkpoints.settle();
        EXPECT_EQ(device.ledger().peak_bytes(), 0u);
        EXPECT_EQ(host.ledger().peak_bytes(), 0u);
    }
}

// More than the device has is said to be so. Catches room on the device for what is kept on the
// host.
TEST(ActivationCheckpoints, OffloadedOnesNeedRoomForOnePartAlone) {
    for (const bool offloaded : {false, true}) {
        memory::Space device("device", 2 * 40);
        memory::Space host("host");
        ActivationCheckpoints checkpoints(kCount, 10, DType::fp32, device,
                                          {.host = offloaded ? &host : nullptr});
        const Bytes source = activation(40, 1);
        const auto put_all = [&] {
            for (std::size_t index = 0; index < kCount; ++index)
                checkpoints.put(index, {DType::fp32, source.data(), 10});
        };
        if (!offloaded) {
            EXPECT_THROW(put_all(), memory::OutOfMemory);
            continue;
        }
        put_all();  // one part travels
        for (std::size_t index = kCount; index-- > 0;) {
            const memory::Buffer taken = checkpoints.take(index);  // and one is whole
            EXPECT_EQ(Bytes(taken.data(), taken.data() + 40), source);
        }
    }
}

}  // namespace
}  // namespace zeroproof::reference
