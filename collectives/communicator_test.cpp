#include "collectives/communicator.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace zeroproof::collectives {
namespace {

constexpr DType kF32 = DType::fp32;
constexpr Reduction kNone = Reduction::none;
constexpr Reduction kSum = Reduction::sum;

std::array<std::byte, 128> memory_a;
std::array<std::byte, 128> memory_b;
std::byte* const a = memory_a.data();
std::byte* const b = memory_b.data();

std::string why_rejected(const Operation& operation, int rank, int size) {
    try {
        check(operation, rank, size);
        return "";
    } catch (const BadOperation& error) {
        return error.what();
    }
}

TEST(Check, AcceptsWhatTheTableOfOperationsLists) {
    const Operation accepted[] = {
        {Op::broadcast, kF32, kNone, a, b, 3, 3, 0},
        {Op::broadcast, kF32, kNone, a, a, 3, 3, 2},
        {Op::broadcast, kF32, kNone, nullptr, b, 3, 3, 0},  // read on the root alone
        {Op::reduce, kF32, kSum, a, b, 3, 3, 1},
        {Op::reduce, kF32, kSum, a, a, 3, 3, 1},
        {Op::reduce, kF32, kSum, a, nullptr, 3, 0, 0},
        {Op::all_reduce, kF32, Reduction::max, a, a, 3, 3, -1},
        {Op::reduce_scatter, kF32, kSum, a, b, 6, 2, -1},
        {Op::reduce_scatter, kF32, kSum, a, a + 8, 6, 2, -1},
        {Op::all_gather, kF32, kNone, a, b, 2, 6, -1},
        {Op::all_gather, kF32, kNone, a + 8, a, 2, 6, -1},
        {Op::all_to_all, kF32, kNone, a, b, 6, 6, -1},
        {Op::send, kF32, kNone, a, nullptr, 5, 0, 0},
        {Op::receive, kF32, kNone, nullptr, b, 0, 5, 2},
        {Op::all_reduce, kF32, kSum, nullptr, nullptr, 0, 0, -1},
        {Op::all_reduce, kF32, kSum, a, a + 12, 3, 3, -1},  // adjacent
    };
    for (const Operation& operation : accepted) EXPECT_EQ(why_rejected(operation, 1, 3), "");
}

TEST(Check, RejectsTheRestSayingWhy) {
    const struct {
        Operation operation;
        std::string why;
    } cases[] = {
        {{Op::broadcast, kF32, kNone, a, a, 3, 3, 3}, "no such peer"},
        {{Op::reduce, kF32, kSum, a, a, 3, 3, -1}, "no such peer"},
        {{Op::send, kF32, kNone, a, nullptr, 5, 0, -1}, "no such peer"},
        {{Op::broadcast, kF32, kNone, a, b, 3, 2, 0}, "counts"},
        {{Op::reduce, kF32, kSum, a, b, 3, 3, 0}, "counts"},
        {{Op::reduce, kF32, kSum, a, b, 3, 0, 1}, "counts"},
        {{Op::all_reduce, kF32, kSum, a, b, 3, 4, -1}, "counts"},
        {{Op::reduce_scatter, kF32, kSum, a, b, 7, 2, -1}, "counts"},
        {{Op::all_gather, kF32, kNone, a, b, 2, 2, -1}, "counts"},
        {{Op::all_to_all, kF32, kNone, a, b, 4, 4, -1}, "counts"},
        {{Op::send, kF32, kNone, a, b, 5, 5, 0}, "counts"},
        {{Op::send, kF32, kNone, a, nullptr, 5, 0, 1}, "counts"},  // to itself
        {{Op::receive, kF32, kNone, nullptr, b, 0, 5, 1}, "counts"},
        {{Op::all_reduce, kF32, kNone, a, b, 3, 3, -1}, "a reduction is for"},
        {{Op::all_gather, kF32, kSum, a, b, 2, 6, -1}, "a reduction is for"},
        {{Op::all_reduce, kF32, kSum, nullptr, b, 3, 3, -1}, "no memory"},
        {{Op::all_gather, kF32, kNone, a, nullptr, 2, 6, -1}, "no memory"},
        {{Op::broadcast, kF32, kNone, nullptr, b, 3, 3, 1}, "no memory"},  // on the root
        {{Op::broadcast, kF32, kNone, a, nullptr, 3, 3, 0}, "no memory"},
        {{Op::all_reduce, kF32, kSum, a, a + 4, 3, 3, -1}, "overlap"},
        {{Op::reduce_scatter, kF32, kSum, a, a, 6, 2, -1}, "overlap"},
        {{Op::reduce_scatter, kF32, kSum, a, a + 16, 6, 2, -1}, "overlap"},
        {{Op::all_gather, kF32, kNone, a, a, 2, 6, -1}, "overlap"},
        {{Op::all_to_all, kF32, kNone, a, a, 6, 6, -1}, "overlap"},
    };
    for (const auto& c : cases) {
        const std::string why = why_rejected(c.operation, 1, 3);
        EXPECT_NE(why.find("rank 1 of 3: " + describe(c.operation)), std::string::npos) << why;
        EXPECT_NE(why.find(c.why), std::string::npos) << why;
    }
}

// Over 4 ranks, 2^62 elements of one rank are 0 in all, and 2^60 fp32 of each are 0 bytes.
TEST(Check, RejectsCountsWhoseProductsWrapAround) {
    for (const std::size_t count : {std::size_t{1} << 62, std::size_t{1} << 60}) {
        const std::size_t all = 4 * count;
        for (const Operation& operation :
             {Operation{Op::reduce_scatter, kF32, kSum, a, b, all, count, -1},
              Operation{Op::all_gather, kF32, kNone, a, b, count, all, -1},
              Operation{Op::all_to_all, kF32, kNone, a, b, all + count, all + count, -1},
              Operation{Op::all_reduce, kF32, kSum, a, a, count, count, -1},
              Operation{Op::send, kF32, kNone, a, nullptr, count, 0, 0}})
            EXPECT_NE(why_rejected(operation, 1, 4).find("too large"), std::string::npos)
                << describe(operation);
    }
}

TEST(Describe, SaysWhatAnOperationIs) {
    EXPECT_EQ(describe({Op::all_reduce, kF32, kSum, a, a, 12, 12, -1}),
              "all_reduce of 12 fp32 to 12, sum");
    EXPECT_EQ(describe({Op::reduce, DType::bf16, Reduction::mean, a, a, 1, 0, 2}),
              "reduce of 1 bf16 to 0, mean, root 2");
    EXPECT_EQ(describe({Op::receive, DType::int8, kNone, nullptr, a, 0, 7, 3}),
              "receive of 0 int8 to 7, peer 3");
}

}  // namespace
}  // namespace zeroproof::collectives
