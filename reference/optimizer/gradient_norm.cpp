#include "reference/optimizer/gradient_norm.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "memory/dtype.h"

namespace zeroproof::reference {

void GradientMeasure::add(ConstTensor gradient, float divisor) {
    for (std::size_t i = 0; i < gradient.elements; ++i) {
        const double g = memory::load_element(gradient.type, gradient.data, i) / divisor;
        if (std::isfinite(g))
            sum_of_squares += g * g;
        else
            non_finite += 1;
    }
}

void GradientMeasure::reduce(collectives::Communicator& group) {
    std::array<double, 2> values{sum_of_squares, non_finite};
    auto* data = reinterpret_cast<std::byte*>(values.data());
    group.all_reduce(data, data, values.size(), DType::fp64, collectives::Reduction::sum).wait();
    sum_of_squares = values[0];
    non_finite = values[1];
}

float clip_coefficient(double norm, double bound) {
    if (bound == 0 || norm == 0) return 1;
    return static_cast<float>(std::min(1.0, bound / norm));
}

}  // namespace zeroproof::reference
