// Every operation, type, reduction, size of group and way to lie in memory, against its definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "collectives/operation_cases.h"
#include "collectives/test_support.h"

namespace zeroproof::collectives {
namespace {

using memory::BFloat16;
using memory::Half;

std::uint64_t scramble(std::uint64_t seed) {  // splitmix64
    seed += 0x9E3779B97F4A7C15u;
    seed = (seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9u;
    seed = (seed ^ (seed >> 27)) * 0x94D049BB133111EBu;
    return seed ^ (seed >> 31);
}

// Floats of magnitudes so mixed that the order of a sum shows; integers over their whole range.
RankMemory make_memory(const OperationCase& c, int ranks, int rank, std::uint64_t seed) {
    RankMemory memory = lay_out(c, ranks, rank);
    const std::size_t width = memory::size_of(c.type);
    for (std::size_t i = 0; i < memory.in_elements; ++i) {
        const std::uint64_t random = scramble(seed + static_cast<std::uint64_t>(rank) * 7919 + i);
        std::byte* const input = memory.bytes.data() + memory.input;
        if (!memory::is_floating(c.type)) {
            std::memcpy(input + i * width, &random, width);
            continue;
        }
        const int spread = c.type == DType::fp16 ? 6 : 20;
        const int exponent =
            static_cast<int>(random % (2 * static_cast<unsigned>(spread))) - spread;
        const double mantissa = static_cast<double>(static_cast<std::int64_t>(random));
        memory::store_element(c.type, input, i, std::ldexp(mantissa, exponent - 63));
    }
    return memory;
}

template <typename T>
T element(const std::byte* data, std::size_t index) {
    T value;
    std::memcpy(&value, data + index * sizeof(T), sizeof(T));
    return value;
}

template <typename T>
T reduced(Reduction reduction, const std::vector<T>& parts) {
    if (reduction == Reduction::none) return parts.front();
    constexpr bool kIsNarrowFloat = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
    using Wide = std::conditional_t<kIsNarrowFloat, float,
                                    std::conditional_t<std::is_integral_v<T>, std::int64_t, T>>;
    const auto widen = [](T part) {
        if constexpr (kIsNarrowFloat)
            return to_float(part);
        else
            return static_cast<Wide>(part);
    };
    Wide total = widen(parts.front());
    for (std::size_t i = 1; i < parts.size(); ++i) {
        const Wide part = widen(parts[i]);
        if (reduction == Reduction::max)
            total = part > total ? part : total;
        else if (reduction == Reduction::min)
            total = part < total ? part : total;
        else if constexpr (std::is_integral_v<T>)
            total = static_cast<Wide>(static_cast<std::uint64_t>(total) +
                                      static_cast<std::uint64_t>(part));
        else
            total = total + part;
    }
    if (reduction == Reduction::mean) total /= static_cast<Wide>(parts.size());
    if constexpr (std::is_same_v<T, Half>)
        return memory::to_half(total);
    else if constexpr (std::is_same_v<T, BFloat16>)
        return memory::to_bfloat16(total);
    else
        return static_cast<T>(total);
}

// Element `index` of the output of `rank`, from the definition of the operation. `parts` is room
// for one element of each rank.
template <typename T>
T expected_element(const OperationCase& c, const std::vector<RankMemory>& before, std::size_t rank,
                   std::size_t index, std::vector<T>& parts) {
    const auto of = [&](std::size_t source, std::size_t i) {
        return element<T>(before[source].bytes.data() + before[source].input, i);
    };
    switch (c.op) {
        case Op::broadcast: return of(static_cast<std::size_t>(c.root), index);
        case Op::all_gather: return of(index / c.count, index % c.count);
        case Op::all_to_all: return of(index / c.count, rank * c.count + index % c.count);
        default: break;
    }
    for (std::size_t source = 0; source < before.size(); ++source)
        parts[source] = of(source, c.op == Op::reduce_scatter ? rank * c.count + index : index);
    return reduced(c.reduction, parts);
}

std::vector<RankMemory> expected_memory(const OperationCase& c,
                                        const std::vector<RankMemory>& before) {
    std::vector<RankMemory> after = before;
    memory::with_storage_type(c.type, [&](auto storage) {
        using T = decltype(storage);
        std::vector<T> parts(before.size());
        for (std::size_t rank = 0; rank < after.size(); ++rank)
            for (std::size_t i = 0; i < after[rank].out_elements; ++i) {
                const T value = expected_element<T>(c, before, rank, i, parts);
                std::memcpy(after[rank].bytes.data() + after[rank].output + i * sizeof(T), &value,
                            sizeof(T));
            }
    });
    return after;
}

// Starts all of them before the first wait. Ranks wait in different orders.
void check(int ranks, const std::vector<OperationCase>& cases) {
    std::vector<std::vector<RankMemory>> memory;
    std::vector<std::vector<RankMemory>> expected;
    for (const OperationCase& c : cases) {
        std::vector<RankMemory> before;
        for (int rank = 0; rank < ranks; ++rank)
            before.push_back(make_memory(c, ranks, rank, cases.size() * 1000 + memory.size()));
        expected.push_back(expected_memory(c, before));
        memory.push_back(std::move(before));
    }
    run_ranks(ranks, [&](Communicator& world) {
        std::vector<Request> requests;
        for (std::size_t i = 0; i < cases.size(); ++i) {
            RankMemory& mine = memory[i][static_cast<std::size_t>(world.rank())];
            requests.push_back(world.start(operation_of(cases[i], mine)));
        }
        if (world.rank() % 2 == 1) std::reverse(requests.begin(), requests.end());
        std::rotate(requests.begin(),
                    requests.begin() + static_cast<std::ptrdiff_t>(world.rank()) * 5 %
                                           static_cast<std::ptrdiff_t>(requests.size()),
                    requests.end());
        for (Request& request : requests) request.wait();
    });
    for (std::size_t i = 0; i < cases.size(); ++i)
        for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank)
            ASSERT_TRUE(memory[i][rank].bytes == expected[i][rank].bytes)
                << name_of(cases[i].op) << " " << memory::name_of(cases[i].type) << " "
                << name_of(cases[i].reduction) << " of " << cases[i].count << ", root "
                << cases[i].root << (cases[i].in_place ? ", in place" : "")
                << (cases[i].aligned ? ", aligned" : "") << ": rank " << rank << " of " << ranks;
}

class ThreadWorldValues : public ::testing::TestWithParam<int> {};

TEST_P(ThreadWorldValues, EveryOperationDoesWhatItsDefinitionSays) {
    for (const DType type : memory::kAllDTypes)
        for (const std::size_t count : {0, 1, 15, 97})
            ASSERT_NO_FATAL_FAILURE(check(GetParam(), operation_cases(type, count, GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Ranks, ThreadWorldValues, ::testing::Values(1, 2, 3, 4, 5, 8, 12));

// Large enough to be cut into slices, which the ranks share, with a short one at the end. Of the
// ways to lie in memory, some for each type: all of them would take long under a sanitizer.
TEST(ThreadWorldValues, LargeOperationsToo) {
    for (std::size_t type = 0; type < std::size(memory::kAllDTypes); ++type) {
        const DType dtype = memory::kAllDTypes[type];
        const auto all = operation_cases(dtype, 300 * 1024 / memory::size_of(dtype) + 13, 3);
        std::vector<OperationCase> some;
        for (std::size_t i = type % 3; i < all.size(); i += 3) some.push_back(all[i]);
        ASSERT_NO_FATAL_FAILURE(check(3, some));
    }
}

}  // namespace
}  // namespace zeroproof::collectives
