#include "suites/benchmarks/training/products.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <map>
#include <thread>
#include <utility>

// As cblas.h declares it, its enumerations as the numbers that they are. The linker's --wrap gives
// the first name to whoever calls cblas_sgemm, and the second to the library's own function.
extern "C" {
void __wrap_cblas_sgemm(int order, int a_transposed, int b_transposed, int rows, int columns,
                        int inner, float alpha, const float* a, int a_stride, const float* b,
                        int b_stride, float beta, float* c, int c_stride);
void __real_cblas_sgemm(int order, int a_transposed, int b_transposed, int rows, int columns,
                        int inner, float alpha, const float* a, int a_stride, const float* b,
                        int b_stride, float beta, float* c, int c_stride);
}

namespace zeroproof {
namespace {

using Clock = std::chrono::steady_clock;

thread_local Products of_this_thread;

double since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Operands of one product, as far apart in memory as those of a step are.
struct Operands {
    std::vector<float> a, b, c;

    explicit Operands(const ProductCall& call)
        : a(size(call.a_transposed != kAsIs ? call.inner : call.rows, call.a_stride), 0.5f),
          b(size(call.b_transposed != kAsIs ? call.columns : call.inner, call.b_stride), 0.5f),
          c(size(call.rows, call.c_stride), 0.0f) {}

    static constexpr int kAsIs = 111;  // CblasNoTrans
    static std::size_t size(int rows, int stride) {
        return static_cast<std::size_t>(rows) * static_cast<std::size_t>(stride);
    }
};

}  // namespace

double Products::operations() const {
    double all = 0;
    for (const ProductCall& call : calls) all += call.operations();
    return all;
}

Products take_products() {
    return std::exchange(of_this_thread, {});
}

double time_alone(const std::vector<ProductCall>& calls, int threads) {
    std::vector<double> seconds(static_cast<std::size_t>(threads));
    std::barrier together(threads);
    const auto work = [&](std::size_t thread) {
        std::map<ProductCall, Operands> operands;
        std::vector<Operands*> of_call;
        for (const ProductCall& call : calls)
            of_call.push_back(&operands.try_emplace(call, call).first->second);
        together.arrive_and_wait();
        const Clock::time_point begin = Clock::now();
        for (std::size_t i = 0; i < calls.size(); ++i) {
            const ProductCall& call = calls[i];
            __real_cblas_sgemm(call.order, call.a_transposed, call.b_transposed, call.rows,
                               call.columns, call.inner, 1.0f, of_call[i]->a.data(), call.a_stride,
                               of_call[i]->b.data(), call.b_stride, call.beta, of_call[i]->c.data(),
                               call.c_stride);
        }
        seconds[thread] = since(begin);
    };
    std::vector<std::thread> running;
    for (std::size_t thread = 0; thread < seconds.size(); ++thread)
        running.emplace_back(work, thread);
    for (std::thread& thread : running) thread.join();
    return std::ranges::max(seconds);
}

}  // namespace zeroproof

void __wrap_cblas_sgemm(int order, int a_transposed, int b_transposed, int rows, int columns,
                        int inner, float alpha, const float* a, int a_stride, const float* b,
                        int b_stride, float beta, float* c, int c_stride) {
    using namespace zeroproof;
    const Clock::time_point begin = Clock::now();
    __real_cblas_sgemm(order, a_transposed, b_transposed, rows, columns, inner, alpha, a, a_stride,
                       b, b_stride, beta, c, c_stride);
    of_this_thread.seconds += since(begin);
    of_this_thread.calls.push_back({order, a_transposed, b_transposed, rows, columns, inner,
                                    a_stride, b_stride, c_stride, beta});
}
