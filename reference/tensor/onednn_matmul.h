// Products of bf16 matrices by oneDNN.
#pragma once

#include "reference/tensor/matmul.h"

namespace zeroproof::reference {

// As matmul; `inner` is the common side, and nothing is empty. Out is bf16 or fp32.
template <typename Out>
void onednn_matmul(Matrix<const BFloat16> a, Matrix<const BFloat16> b, Matrix<Out> c,
                   std::size_t inner, Product product);

// Of products that this thread asks for.
void set_onednn_threads(int threads);

}  // namespace zeroproof::reference
