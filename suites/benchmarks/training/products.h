// The products of matrices that a training step asks OpenBLAS for.
#pragma once

#include <compare>
#include <cstddef>
#include <vector>

namespace zeroproof {

// One call of cblas_sgemm: c, rows x columns, of matrices whose common side is `inner`.
struct ProductCall {
    int order, a_transposed, b_transposed;  // in the numbers of cblas.h
    int rows, columns, inner;
    int a_stride, b_stride, c_stride;
    float beta;  // 1 where the product is added to what c holds

    double operations() const { return 2.0 * rows * columns * inner; }
    friend auto operator<=>(const ProductCall&, const ProductCall&) = default;
};

struct Products {
    std::vector<ProductCall> calls;
    double seconds = 0;

    double operations() const;
};

// What this thread has asked for since it last called this. The program is linked so that all its
// calls pass by here.
Products take_products();

// The seconds of the same calls and nothing else, on operands of the same sizes, while `threads`
// threads each do all of them; the slowest thread's.
double time_alone(const std::vector<ProductCall>& calls, int threads);

}  // namespace zeroproof
