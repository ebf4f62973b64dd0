// Linear layers that are cut over ranks against the whole layer.
#include "reference/tensor_parallel/linear.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "collectives/metered.h"
#include "collectives/test_support.h"
#include "reference/tensor/matmul.h"

namespace zeroproof::reference {
namespace {

using collectives::Communicator;
using collectives::Meter;
using collectives::MeteredCommunicator;
using collectives::Op;

// y = x weight^T. 12 columns of x and rows of the weight divide by 2 and by 3.
constexpr std::size_t kRows = 5, kIn = 12, kOut = 6;

// Of -1, 0 and 1, others for each seed: sums of 12 of their products, and sums of 6 of those, are
// whole numbers of magnitude 73 at most, which all types have exactly, in every order of summation.
template <typename T>
std::vector<T> integers(std::size_t count, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<T> values;
    for (std::size_t i = 0; i < count; ++i)
        values.push_back(narrow<T>(static_cast<Compute<T>>(random() % 3) - 1));
    return values;
}

template <typename T>
Matrix<T> matrix(std::vector<T>& values, std::size_t columns) {
    return {values.data(), values.size() / columns, columns};
}

// Columns [first, first + count) as a matrix of their own.
template <typename T>
std::vector<T> columns_of(Matrix<const T> matrix, std::size_t first, std::size_t count) {
    std::vector<T> part;
    for (std::size_t i = 0; i < matrix.rows; ++i)
        for (std::size_t j = 0; j < count; ++j) part.push_back(matrix.row(i)[first + j]);
    return part;
}
template <typename T>
std::vector<T> rows_of(Matrix<const T> matrix, std::size_t first, std::size_t count) {
    return columns_of<T>(matrix.row_range(first, count), 0, matrix.columns);
}

// The whole layer, by one loop after the other.
template <typename T>
struct Whole {
    std::vector<T> x = integers<T>(kRows * kIn, 1);
    std::vector<T> weight = integers<T>(kOut * kIn, 2);
    std::vector<T> dy = integers<T>(kRows * kOut, 3);
    std::vector<T> dweight_before = integers<T>(kOut * kIn, 5);
    std::vector<T> y = std::vector<T>(kRows * kOut);
    std::vector<T> dx = std::vector<T>(kRows * kIn);
    std::vector<T> dweight = dweight_before;

    Whole() {
        matmul_naive<T, T>(matrix(x, kIn), matrix(weight, kIn), matrix(y, kOut),
                           {.b_transposed = true});
        matmul_naive<T, T>(matrix(dy, kOut), matrix(weight, kIn), matrix(dx, kIn), {});
        matmul_naive<T, T>(matrix(dy, kOut), matrix(x, kIn), matrix(dweight, kIn),
                           {.a_transposed = true, .accumulate = true});
    }
};

template <typename T>
void expect_equal(const std::vector<T>& actual, const std::vector<T>& expected, const char* what) {
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i)
        EXPECT_EQ(widen(actual[i]), widen(expected[i])) << what << " " << i;
}

// The group of a rank, and what goes over it.
class MeteredGroup {
  public:
    explicit MeteredGroup(Communicator& world)
        : meter_(ledger_),
          group_(std::make_unique<collectives::Borrowed>(world), collectives::Traffic::activation,
                 meter_) {}
    Communicator* get() { return &group_; }
    // Operations since the last call, each of which is to be an all-reduce of so many elements.
    std::size_t all_reduces(std::size_t elements) {
        const std::size_t since = seen_;
        for (; seen_ < meter_.records().size(); ++seen_) {
            EXPECT_EQ(meter_.records()[seen_].op, Op::all_reduce);
            EXPECT_EQ(meter_.records()[seen_].in_elements, elements);
            EXPECT_TRUE(meter_.records()[seen_].awaited);
        }
        return seen_ - since;
    }

  private:
    memory::Ledger ledger_;
    Meter meter_;
    MeteredCommunicator group_;
    std::size_t seen_ = 0;
};

template <typename T>
class LinearOfType : public testing::Test {};
using AllTypes = testing::Types<float, double, Half, BFloat16>;
TYPED_TEST_SUITE(LinearOfType, AllTypes);

// Catches a gradient of x that is one rank's part, a weight's gradient that is summed over the
// ranks or not added to what is there, and a forward pass that communicates.
TYPED_TEST(LinearOfType, ColumnParallelIsThatPartOfTheColumns) {
    using T = TypeParam;
    Whole<T> whole;
    for (const int ranks : {1, 2, 3})
        collectives::run_ranks(ranks, [&](Communicator& world) {
            set_threads_per_rank(1);
            MeteredGroup group(world);
            const std::size_t part = kOut / static_cast<std::size_t>(ranks);
            const std::size_t first = part * static_cast<std::size_t>(world.rank());
            std::vector<T> x = whole.x;
            std::vector<T> weight = rows_of<T>(matrix(whole.weight, kIn), first, part);
            std::vector<T> y(kRows * part);
            column_parallel<T>(matrix(x, kIn), matrix(weight, kIn), matrix(y, part));
            expect_equal(y, columns_of<T>(matrix(whole.y, kOut), first, part), "y");

            std::vector<T> dy = columns_of<T>(matrix(whole.dy, kOut), first, part);
            std::vector<T> dx(kRows * kIn);
            std::vector<T> dweight = rows_of<T>(matrix(whole.dweight_before, kIn), first, part);
            column_parallel_backward<T>(matrix(x, kIn), matrix(weight, kIn), matrix(dy, part),
                                        matrix(dx, kIn), matrix(dweight, kIn), group.get());
            expect_equal(dx, whole.dx, "dx");
            expect_equal(dweight, rows_of<T>(matrix(whole.dweight, kIn), first, part), "dweight");
            EXPECT_EQ(group.all_reduces(kRows * kIn), 1u);
        });
}

// Catches an output that is one rank's part of the sum, and a backward pass that communicates.
TYPED_TEST(LinearOfType, RowParallelIsTheWholeSum) {
    using T = TypeParam;
    Whole<T> whole;
    for (const int ranks : {1, 2, 3})
        collectives::run_ranks(ranks, [&](Communicator& world) {
            set_threads_per_rank(1);
            MeteredGroup group(world);
            const std::size_t part = kIn / static_cast<std::size_t>(ranks);
            const std::size_t first = part * static_cast<std::size_t>(world.rank());
            std::vector<T> x = columns_of<T>(matrix(whole.x, kIn), first, part);
            std::vector<T> weight = columns_of<T>(matrix(whole.weight, kIn), first, part);
            std::vector<T> y(kRows * kOut);
            row_parallel<T>(matrix(x, part), matrix(weight, part), matrix(y, kOut), group.get());
            expect_equal(y, whole.y, "y");
            EXPECT_EQ(group.all_reduces(kRows * kOut), 1u);

            std::vector<T> dy = whole.dy;
            std::vector<T> dx(kRows * part);
            std::vector<T> dweight = columns_of<T>(matrix(whole.dweight_before, kIn), first, part);
            row_parallel_backward<T>(matrix(x, part), matrix(weight, part), matrix(dy, kOut),
                                     matrix(dx, part), matrix(dweight, part));
            expect_equal(dx, columns_of<T>(matrix(whole.dx, kIn), first, part), "dx");
            expect_equal(dweight, columns_of<T>(matrix(whole.dweight, kIn), first, part),
                         "dweight");
            EXPECT_EQ(group.all_reduces(kRows * kOut), 0u);
        });
}

// Where nothing is cut there is no group, and nothing to wait for.
TYPED_TEST(LinearOfType, WithoutAGroupIsTheWholeLayer) {
    using T = TypeParam;
    Whole<T> whole;
    std::vector<T> y(kRows * kOut);
    row_parallel<T>(matrix(whole.x, kIn), matrix(whole.weight, kIn), matrix(y, kOut), nullptr);
    expect_equal(y, whole.y, "y");
    std::vector<T> dx(kRows * kIn);
    std::vector<T> dweight = whole.dweight_before;
    column_parallel_backward<T>(matrix(whole.x, kIn), matrix(whole.weight, kIn),
                                matrix(whole.dy, kOut), matrix(dx, kIn), matrix(dweight, kIn),
                                nullptr);
    expect_equal(dx, whole.dx, "dx");
    expect_equal(dweight, whole.dweight, "dweight");
}

// The two one after the other, as a block has them: what is between needs no communication, so that
// there is one all-reduce forward and one backward.
TYPED_TEST(LinearOfType, OneAfterTheOtherTakesTwoAllReduces) {
    using T = TypeParam;
    Whole<T> first;
    std::vector<T> up = first.weight;
    std::vector<T> down = integers<T>(kIn * kOut, 7);
    std::vector<T> y(kRows * kIn);
    std::vector<T> dy = integers<T>(kRows * kIn, 8);
    std::vector<T> dmiddle(kRows * kOut);
    std::vector<T> dx(kRows * kIn);
    matmul_naive<T, T>(matrix(first.y, kOut), matrix(down, kOut), matrix(y, kIn),
                       {.b_transposed = true});
    matmul_naive<T, T>(matrix(dy, kIn), matrix(down, kOut), matrix(dmiddle, kOut), {});
    matmul_naive<T, T>(matrix(dmiddle, kOut), matrix(up, kIn), matrix(dx, kIn), {});
    for (const int ranks : {2, 3})
        collectives::run_ranks(ranks, [&](Communicator& world) {
            set_threads_per_rank(1);
            MeteredGroup group(world);
            const std::size_t part = kOut / static_cast<std::size_t>(ranks);
            const std::size_t begin = part * static_cast<std::size_t>(world.rank());
            std::vector<T> x = first.x;
            std::vector<T> my_up = rows_of<T>(matrix(up, kIn), begin, part);
            std::vector<T> my_down = columns_of<T>(matrix(down, kOut), begin, part);
            std::vector<T> middle(kRows * part);
            std::vector<T> my_y(kRows * kIn);
            column_parallel<T>(matrix(x, kIn), matrix(my_up, kIn), matrix(middle, part));
            row_parallel<T>(matrix(middle, part), matrix(my_down, part), matrix(my_y, kIn),
                            group.get());
            expect_equal(my_y, y, "y");
            EXPECT_EQ(group.all_reduces(kRows * kIn), 1u);

            std::vector<T> my_dy = dy;
            std::vector<T> my_dmiddle(middle.size());
            std::vector<T> my_dx(kRows * kIn);
            std::vector<T> d_up(my_up.size());
            std::vector<T> d_down(my_down.size());
            row_parallel_backward<T>(matrix(middle, part), matrix(my_down, part),
                                     matrix(my_dy, kIn), matrix(my_dmiddle, part),
                                     matrix(d_down, part));
            column_parallel_backward<T>(matrix(x, kIn), matrix(my_up, kIn),
                                        matrix(my_dmiddle, part), matrix(my_dx, kIn),
                                        matrix(d_up, kIn), group.get());
            expect_equal(my_dx, dx, "dx");
            EXPECT_EQ(group.all_reduces(kRows * kIn), 1u);
        });
}

}  // namespace
}  // namespace zeroproof::reference
