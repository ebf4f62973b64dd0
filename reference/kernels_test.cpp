// Element-wise arithmetic, against one element at a time in double precision.
#include "reference/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

namespace zeroproof::reference {
namespace {

constexpr DType kTypes[] = {DType::fp32, DType::bf16, DType::fp16};
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class Room {
  public:
    Room(DType type, const std::vector<float>& values)
        : type_(type), bytes_(values.size() * memory::size_of(type)), elements_(values.size()) {
        for (std::size_t i = 0; i < values.size(); ++i)
            memory::store_element(type, bytes_.data(), i, double{values[i]});
    }
    Tensor tensor() { return {type_, bytes_.data(), elements_}; }
    double at(std::size_t i) const { return memory::load_element(type_, bytes_.data(), i); }

  private:
    DType type_;
    std::vector<std::byte> bytes_;
    std::size_t elements_;
};

double rounded(DType type, double value) {
    return Room(type, {static_cast<float>(value)}).at(0);
}

// Ties, overflow, subnormals, signed zero, infinity, and lengths around those of vectors.
std::vector<float> values_of(std::size_t length, unsigned seed) {
    std::vector<float> values{1.00390625f, 1.01171875f, 65504,  65520,     0x1p-24f, 0x1p-25f,
                              -0.0f,       3.4e38f,     1e-40f, kInfinity, -2049,    1};
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-4, 4);
    while (values.size() < length) values.push_back(uniform(random));
    values.resize(length);
    return values;
}
bool same(double a, double b) {
    return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

// FC11: a tail that is left out; FC21: a sum that is rounded elsewhere or not at all.
TEST(Kernels, EachElementIsTheRoundedResultOfItsOwnAndNoOther) {
    for (const DType type : kTypes)
        for (std::size_t length = 0; length < 70; ++length) {
            const auto a = values_of(length, 1);
            const auto b = values_of(length, 2);
            Room sum(type, a), wide_sum(type, a), cast(type, b);
            Room source(type, b);
            std::vector<float> widened(length, 7);
            add_into(sum.tensor(), ConstTensor(source.tensor()));
            add_into(wide_sum.tensor(), std::span<const float>(b));
            cast_into(cast.tensor(), a);
            widen_into(widened, source.tensor());
            for (std::size_t i = 0; i < length; ++i) {
                const auto start = static_cast<float>(rounded(type, double{a[i]}));
                const auto add = static_cast<float>(source.at(i));
                EXPECT_TRUE(same(sum.at(i), rounded(type, double{start + add})));
                EXPECT_TRUE(same(wide_sum.at(i), rounded(type, double{start + b[i]})));
                EXPECT_TRUE(same(cast.at(i), rounded(type, double{a[i]})));
                EXPECT_TRUE(same(double{widened[i]}, source.at(i)));
            }
        }
}

// 256 + 1 in bf16 is 256, 1.00390625 is a tie that goes to the even 1.
TEST(Kernels, RoundingByHand) {
    Room room(DType::bf16, {256, 256, 0, 0});
    add_into(room.tensor(), std::vector<float>{1, 3, 1.00390625f, 1.01171875f});
    EXPECT_EQ(room.at(0), 256);
    EXPECT_EQ(room.at(1), 260);
    EXPECT_EQ(room.at(2), 1);
    EXPECT_EQ(room.at(3), 1.015625);
}

TEST(Kernels, TensorsThatDoNotMatchAreErrors) {
    Room three(DType::bf16, {1, 2, 3});
    Room other(DType::fp16, {1, 2, 3});
    std::vector<float> two{1, 2};
    const std::function<void()> rows[] = {
        [&] { add_into(three.tensor(), ConstTensor(other.tensor())); },
        [&] { add_into(three.tensor(), std::span<const float>(two)); },
        [&] { cast_into(three.tensor(), two); },
        [&] { widen_into(two, three.tensor()); },
        [&] {
            std::int32_t integers[2] = {};
            cast_into({DType::int32, reinterpret_cast<std::byte*>(integers), 2}, two);
        },
    };
    for (const auto& act : rows) EXPECT_THROW(act(), std::logic_error);
    EXPECT_EQ(three.at(0), 1);
}

}  // namespace
}  // namespace zeroproof::reference
