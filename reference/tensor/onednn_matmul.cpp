#include "reference/tensor/onednn_matmul.h"

#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <tuple>

// Of the OpenMP runtime that oneDNN brings: the number of threads of what the calling thread
// starts.
extern "C" void omp_set_num_threads(int threads);

namespace zeroproof::reference {

namespace {

const dnnl::engine& engine() {
    static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
    return cpu;
}

dnnl::memory::desc describe(std::size_t rows, std::size_t columns, std::size_t stride,
                            bool transposed, dnnl::memory::data_type type) {
    const auto at = [](std::size_t value) { return static_cast<dnnl::memory::dim>(value); };
    return {{at(rows), at(columns)},
            type,
            transposed ? dnnl::memory::dims{1, at(stride)} : dnnl::memory::dims{at(stride), 1}};
}

// Making a primitive takes longer than a small product, so that a thread keeps those it has made.
using Key = std::tuple<std::size_t, std::size_t, std::size_t, std::size_t, std::size_t, std::size_t,
                       bool, bool, bool, bool>;

struct Primitive {
    dnnl::memory::desc a, b, c;
    dnnl::matmul product;
};

}  // namespace

bool has_bf16_products() {
    static const bool has = dnnl::get_effective_cpu_isa() == dnnl::cpu_isa::avx512_core_bf16 ||
                            dnnl::get_effective_cpu_isa() == dnnl::cpu_isa::avx512_core_amx;
    return has;
}

template <typename Out>
void onednn_matmul(Matrix<const BFloat16> a, Matrix<const BFloat16> b, Matrix<Out> c,
                   std::size_t inner, Product product) {
    using Type = dnnl::memory::data_type;
    constexpr bool kWide = std::is_same_v<Out, float>;
    thread_local std::map<Key, Primitive> made;
    const Key key{c.rows,
                  c.columns,
                  inner,
                  a.stride,
                  b.stride,
                  c.stride,
                  kWide,
                  product.a_transposed,
                  product.b_transposed,
                  product.accumulate};
    auto found = made.find(key);
    if (found == made.end()) {
        const auto a_of = describe(c.rows, inner, a.stride, product.a_transposed, Type::bf16);
        const auto b_of = describe(inner, c.columns, b.stride, product.b_transposed, Type::bf16);
        const auto c_of =
            describe(c.rows, c.columns, c.stride, false, kWide ? Type::f32 : Type::bf16);
        dnnl::primitive_attr attributes;
        if (product.accumulate) {
            dnnl::post_ops add;
            add.append_sum(1.0f);
            attributes.set_post_ops(add);
        }
        const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a_of, b_of, c_of),
                                                       attributes, engine());
        found = made.emplace(key, Primitive{a_of, b_of, c_of, dnnl::matmul(description)}).first;
    }
    thread_local dnnl::stream stream(engine());
    // oneDNN's handles are of memory that may be written; it reads these two.
    const auto memory = [](const dnnl::memory::desc& of, const void* data) {
        return dnnl::memory(of, engine(), const_cast<void*>(data));
    };
    const Primitive& primitive = found->second;
    primitive.product.execute(stream, {{DNNL_ARG_SRC, memory(primitive.a, a.data)},
                                       {DNNL_ARG_WEIGHTS, memory(primitive.b, b.data)},
                                       {DNNL_ARG_DST, memory(primitive.c, c.data)}});
    stream.wait();
}

void set_onednn_threads(int threads) {
    omp_set_num_threads(threads);
}

template void onednn_matmul(Matrix<const BFloat16>, Matrix<const BFloat16>, Matrix<BFloat16>,
                            std::size_t, Product);
template void onednn_matmul(Matrix<const BFloat16>, Matrix<const BFloat16>, Matrix<float>,
                            std::size_t, Product);

}  // namespace zeroproof::reference
