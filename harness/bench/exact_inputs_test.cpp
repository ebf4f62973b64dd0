#include "harness/bench/exact_inputs.h"

#include <gtest/gtest.h>

namespace zeroproof::harness {
namespace {

TEST(ExactInputs, AddUpToTheSumInEveryTypeAndOrder) {
    for (const memory::DType type : memory::kAllDTypes)
        for (const int ranks : {1, 2, 3, 5, 8, 64})
            for (std::size_t i = 0; i < 100; ++i) {
                const ExactInputs inputs(type, ranks);
                double sum = 0;
                for (int rank = ranks; rank-- > 0;) sum += inputs.value(rank, i);
                EXPECT_EQ(sum, inputs.sum(i));
                std::byte bytes[8];
                memory::store_element(type, bytes, 0, sum);
                EXPECT_EQ(memory::load_element(type, bytes, 0), sum) << memory::name_of(type);
            }
}

TEST(ExactInputs, FindTheElementThatDiffers) {
    const ExactInputs inputs(memory::DType::bf16, 3);
    std::vector<std::byte> data(2 * 1000);
    inputs.fill(1, 7, 1000, data.data());
    EXPECT_EQ(inputs.difference(1, 7, 1000, data.data()), "");
    EXPECT_NE(inputs.difference(2, 7, 1000, data.data()), "");
    EXPECT_NE(inputs.difference(1, 8, 1000, data.data()), "");
    memory::store_element(memory::DType::bf16, data.data(), 777, -1);
    EXPECT_EQ(inputs.difference(1, 7, 1000, data.data()).substr(0, 17), "element 777 is -1");
}

}  // namespace
}  // namespace zeroproof::harness
