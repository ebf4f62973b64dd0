#include "reference/layers/feed_forward.h"

#include "reference/layers/exponential.h"

namespace zeroproof::reference {

namespace {

template <typename C>
C sigmoid(C x) {
    return 1 / (1 + exponential(-x));
}

// (1 + tanh(u)) / 2 = sigmoid(2 u)
template <typename C>
constexpr C kTwiceRootTwoOverPi = static_cast<C>(1.5957691216057307117597842397375L);
template <typename C>
constexpr C kCubic = static_cast<C>(0.044715L);

template <typename C>
C gelu(C x) {
    return x * sigmoid(kTwiceRootTwoOverPi<C> * (x + kCubic<C> * x * x * x));
}

template <typename C>
C gelu_slope(C x) {
    const C s = sigmoid(kTwiceRootTwoOverPi<C> * (x + kCubic<C> * x * x * x));
    return s + x * s * (1 - s) * kTwiceRootTwoOverPi<C> * (1 + 3 * kCubic<C> * x * x);
}

}  // namespace

template <typename T>
void activate(Nonlinearity kind, Matrix<const T> x, Matrix<T> y) {
    using C = Compute<T>;
    const std::size_t columns = y.columns;
    for (std::size_t i = 0; i < y.rows; ++i) {
        const T* from = x.row(i).data();
        T* to = y.row(i).data();
        if (kind == Nonlinearity::gelu)
            for (std::size_t j = 0; j < columns; ++j) to[j] = narrow<T>(gelu(widen(from[j])));
        else
            for (std::size_t j = 0; j < columns; ++j) {
                const C gate = widen(from[j]);
                to[j] = narrow<T>(gate * sigmoid(gate) * widen(from[columns + j]));
            }
    }
}

template <typename T>
void activate_backward(Nonlinearity kind, Matrix<T> x, Matrix<const T> y_gradient) {
    using C = Compute<T>;
    const std::size_t columns = y_gradient.columns;
    for (std::size_t i = 0; i < x.rows; ++i) {
        T* at = x.row(i).data();
        const T* dy = y_gradient.row(i).data();
        if (kind == Nonlinearity::gelu)
            for (std::size_t j = 0; j < columns; ++j)
                at[j] = narrow<T>(widen(dy[j]) * gelu_slope(widen(at[j])));
        else
            for (std::size_t j = 0; j < columns; ++j) {
                const C gate = widen(at[j]);
                const C up = widen(at[columns + j]);
                const C s = sigmoid(gate);
                const C g = widen(dy[j]);
                at[j] = narrow<T>(g * up * (s + gate * s * (1 - s)));
                at[columns + j] = narrow<T>(g * gate * s);
            }
    }
}

#define ZEROPROOF_INSTANTIATE(T)                                      \
    template void activate(Nonlinearity, Matrix<const T>, Matrix<T>); \
    template void activate_backward(Nonlinearity, Matrix<T>, Matrix<const T>);
ZEROPROOF_INSTANTIATE(float)
ZEROPROOF_INSTANTIATE(double)
ZEROPROOF_INSTANTIATE(Half)
ZEROPROOF_INSTANTIATE(BFloat16)

}  // namespace zeroproof::reference
