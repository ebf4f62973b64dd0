// Products of matrices, by the libraries that are best at them.
#pragma once

#include <string>
#include <type_traits>

#include "reference/tensor/matrix.h"
#include "reference/tensor/scalar.h"

namespace zeroproof::reference {

struct Product {
    bool a_transposed = false;
    bool b_transposed = false;
    bool accumulate = false;  // c += a b in place of c = a b
};

// c = a b. After transposing as `product` says, a is c.rows x K and b is K x c.columns. Each
// element is summed in the compute type and rounded once, also where it is added to what c holds.
//   fp32, fp64   OpenBLAS
//   bf16         oneDNN where the processor has instructions for bf16, else as fp16
//   fp16         widened a tile at a time and given to OpenBLAS
// Throws std::logic_error where the shapes do not fit. Instances: In is one of the four types, Out
// the same or its compute type.
template <typename In, typename Out>
void matmul(Matrix<const In> a, Matrix<const In> b, Matrix<Out> c, Product product);

// One loop after the other: what the others are compared with.
template <typename In, typename Out>
void matmul_naive(Matrix<const In> a, Matrix<const In> b, Matrix<Out> c, Product product);

// For bf16 as for fp16, whatever the processor has.
template <typename In, typename Out>
void matmul_by_tiles(Matrix<const In> a, Matrix<const In> b, Matrix<Out> c, Product product);

// Whether oneDNN multiplies bf16 here.
bool has_bf16_products();

// How many threads a product may take when this thread asks for it. Ranks that are threads share
// the processors: each is to call this once, with its part of them. OpenBLAS has one number for all
// threads of the process, so that all ranks must ask for the same.
void set_threads_per_rank(int threads);

}  // namespace zeroproof::reference
