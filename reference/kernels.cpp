#include "reference/kernels.h"

#include <stdexcept>

#include "reference/tensor/scalar.h"

namespace zeroproof::reference {

namespace {

template <typename Use>
void with_weight_type(DType type, Use&& use) {
    switch (type) {
        case DType::fp32: return use(float{});
        case DType::fp16: return use(Half{});
        case DType::bf16: return use(BFloat16{});
        default: throw std::logic_error("weights and gradients are fp32, fp16 or bf16");
    }
}

void same_size(std::size_t a, std::size_t b) {
    if (a != b) throw std::logic_error("tensors of different sizes");
}

}  // namespace

void add_into(Tensor target, ConstTensor source) {
    same_size(target.elements, source.elements);
    if (target.type != source.type) throw std::logic_error("tensors of different types");
    with_weight_type(target.type, [&](auto storage) {
        using Storage = decltype(storage);
        auto* to = reinterpret_cast<Storage*>(target.data);
        const auto* from = reinterpret_cast<const Storage*>(source.data);
        for (std::size_t i = 0; i < target.elements; ++i)
            to[i] = narrow<Storage>(widen(to[i]) + widen(from[i]));
    });
}

void add_into(Tensor target, std::span<const float> source) {
    same_size(target.elements, source.size());
    with_weight_type(target.type, [&](auto storage) {
        using Storage = decltype(storage);
        auto* to = reinterpret_cast<Storage*>(target.data);
        for (std::size_t i = 0; i < target.elements; ++i)
            to[i] = narrow<Storage>(widen(to[i]) + source[i]);
    });
}

void scale(Tensor target, float factor) {
    with_weight_type(target.type, [&](auto storage) {
        using Storage = decltype(storage);
        auto* values = reinterpret_cast<Storage*>(target.data);
        for (std::size_t i = 0; i < target.elements; ++i)
            values[i] = narrow<Storage>(widen(values[i]) * factor);
    });
}

void cast_into(Tensor target, std::span<const float> source) {
    same_size(target.elements, source.size());
    with_weight_type(target.type, [&](auto storage) {
        using Storage = decltype(storage);
        auto* to = reinterpret_cast<Storage*>(target.data);
        for (std::size_t i = 0; i < target.elements; ++i) to[i] = narrow<Storage>(source[i]);
    });
}

void widen_into(std::span<float> target, ConstTensor source) {
    same_size(target.size(), source.elements);
    with_weight_type(source.type, [&](auto storage) {
        using Storage = decltype(storage);
        const auto* from = reinterpret_cast<const Storage*>(source.data);
        for (std::size_t i = 0; i < target.size(); ++i) target[i] = widen(from[i]);
    });
}

}  // namespace zeroproof::reference
