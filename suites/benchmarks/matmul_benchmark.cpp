// GFLOP/s of the products that a step of gpt2-10m is made of, by the libraries alone and by the
// reference, in one thread; the reference is to reach 80 % of the library that it calls.
//
// All are timed in turn, so that other load on the machine meets them alike, by the processor time
// of their thread. Each row has, in GFLOP/s, what the libraries come to (openblas_fp32,
// onednn_fp32, onednn_bf16) and what the reference does (fp32, bf16, bf16_tiles, fp16_tiles), and
// `share_` of each: the reference's beside that of the library below it, of which the limit is 0.8.
// Products by tiles stand on OpenBLAS in fp32. Counters of bf16 are missing where the processor has
// no instructions for it.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <functional>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <vector>

#include "reference/tensor/matmul.h"

// As cblas.h declares it, its enumerations as the numbers that they are.
extern "C" void cblas_sgemm(int order, int a_transposed, int b_transposed, int rows, int columns,
                            int inner, float alpha, const float* a, int a_stride, const float* b,
                            int b_stride, float beta, float* c, int c_stride);

namespace zeroproof::reference {
namespace {

// c = a b^T, as in a linear layer: rows x inner by columns x inner.
struct Shape {
    int rows, columns, inner;
    double operations() const { return 2.0 * rows * columns * inner; }
};

double processor_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The operands of one product in one type, and oneDNN's way to multiply them.
template <typename T>
class Operands {
  public:
    explicit Operands(const Shape& shape)
        : shape_(shape),
          a_(filled(shape.rows, shape.inner)),
          b_(filled(shape.columns, shape.inner)),
          c_(filled(shape.rows, shape.columns)) {}

    Matrix<const T> a() const { return matrix(a_, shape_.inner); }
    Matrix<const T> b() const { return matrix(b_, shape_.inner); }
    Matrix<T> c() { return {c_.data(), at(shape_.rows), at(shape_.columns)}; }

    std::function<void()> by_openblas() requires std::is_same_v<T, float> {
        return [this] {
            constexpr int kByRow = 101, kAsIs = 111, kTransposed = 112;
            cblas_sgemm(kByRow, kAsIs, kTransposed, shape_.rows, shape_.columns, shape_.inner, 1.0f,
                        a_.data(), shape_.inner, b_.data(), shape_.inner, 0.0f, c_.data(),
                        shape_.columns);
        };
    }
    std::function<void()> by_onednn() {
        using Memory = dnnl::memory;
        constexpr auto kType =
            std::is_same_v<T, float> ? Memory::data_type::f32 : Memory::data_type::bf16;
        const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
        const Memory::desc a({shape_.rows, shape_.inner}, kType, Memory::format_tag::ab);
        const Memory::desc b({shape_.inner, shape_.columns}, kType, Memory::format_tag::ba);
        const Memory::desc c({shape_.rows, shape_.columns}, kType, Memory::format_tag::ab);
        const dnnl::matmul product({dnnl::matmul::desc(a, b, c), engine});
        const std::unordered_map<int, Memory> operands{
            {DNNL_ARG_SRC, Memory(a, engine, a_.data())},
            {DNNL_ARG_WEIGHTS, Memory(b, engine, b_.data())},
            {DNNL_ARG_DST, Memory(c, engine, c_.data())}};
        return [=, stream = dnnl::stream(engine)]() mutable {
            product.execute(stream, operands);
            stream.wait();
        };
    }
    std::function<void()> by_reference() {
        return [this] { matmul<T, T>(a(), b(), c(), {.b_transposed = true}); };
    }
    std::function<void()> by_tiles() {
        return [this] { matmul_by_tiles<T, T>(a(), b(), c(), {.b_transposed = true}); };
    }

  private:
    static std::size_t at(int size) { return static_cast<std::size_t>(size); }
    static std::vector<T> filled(int rows, int columns) {
        std::vector<T> elements(at(rows) * at(columns));
        for (std::size_t i = 0; i < elements.size(); ++i)
            elements[i] = narrow<T>(0.25f * static_cast<float>(i % 7) - 0.75f);
        return elements;
    }
    Matrix<const T> matrix(const std::vector<T>& elements, int columns) const {
        return {elements.data(), elements.size() / at(columns), at(columns)};
    }

    Shape shape_;
    std::vector<T> a_, b_, c_;
};

// One way to multiply, and the way of the library that it calls.
struct Way {
    const char* name;
    std::function<void()> multiply;
    const char* library = nullptr;  // null for a library alone
    std::vector<double> seconds{};

    // The median: the first is slower, and the machine does other things.
    double median() {
        const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
        std::nth_element(seconds.begin(), middle, seconds.end());
        return *middle;
    }
};

void matmul_of(benchmark::State& state, const Shape& shape) {
    set_threads_per_rank(1);
    Operands<float> fp32(shape);
    Operands<Half> fp16(shape);
    Operands<BFloat16> bf16(shape);
    std::vector<Way> ways{{"openblas_fp32", fp32.by_openblas()},
                          {"onednn_fp32", fp32.by_onednn()},
                          {"fp32", fp32.by_reference(), "openblas_fp32"},
                          {"fp16_tiles", fp16.by_reference(), "openblas_fp32"},
                          {"bf16_tiles", bf16.by_tiles(), "openblas_fp32"}};
    if (has_bf16_products()) {
        ways.push_back({"onednn_bf16", bf16.by_onednn()});
        ways.push_back({"bf16", bf16.by_reference(), "onednn_bf16"});
    }
    for (Way& way : ways) way.multiply();  // what is made once
    for (auto unused : state)
        for (Way& way : ways) {
            const double begin = processor_seconds();
            way.multiply();
            way.seconds.push_back(processor_seconds() - begin);
        }
    for (Way& way : ways) {
        state.counters[way.name] = 1e-9 * shape.operations() / way.median();
        if (way.library == nullptr) continue;
        const auto library = std::ranges::find_if(
            ways, [&](const Way& other) { return std::string(other.name) == way.library; });
        state.counters["share_" + std::string(way.name)] = library->median() / way.median();
    }
}

// 1024 tokens by the weights of a block, and a tile of the scores of one head.
#define PRODUCT(name, ...) \
    BENCHMARK_CAPTURE(matmul_of, name, Shape{__VA_ARGS__})->Unit(benchmark::kMillisecond)
PRODUCT(qkv, 1024, 1152, 384);
PRODUCT(out, 1024, 384, 384);
PRODUCT(up, 1024, 1536, 384);
PRODUCT(down, 1024, 384, 1536);
PRODUCT(scores, 128, 256, 64);
#undef PRODUCT

}  // namespace
}  // namespace zeroproof::reference
