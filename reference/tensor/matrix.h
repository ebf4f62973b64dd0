// A matrix that somebody else owns: rows of neighbouring elements, `stride` elements apart.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include "memory/space.h"

namespace zeroproof::reference {

template <typename T>
struct Matrix {
    T* data = nullptr;
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::size_t stride = 0;

    Matrix() = default;
    Matrix(T* elements, std::size_t row_count, std::size_t column_count)
        : Matrix(elements, row_count, column_count, column_count) {}
    Matrix(T* elements, std::size_t row_count, std::size_t column_count, std::size_t row_stride)
        : data(elements), rows(row_count), columns(column_count), stride(row_stride) {}
    // A matrix to read.
    operator Matrix<const T>() const requires(!std::is_const_v<T>) {
        return {data, rows, columns, stride};
    }

    std::span<T> row(std::size_t index) const { return {data + index * stride, columns}; }
    Matrix row_range(std::size_t first, std::size_t count) const {
        return {data + first * stride, count, columns, stride};
    }
    Matrix column_range(std::size_t first, std::size_t count) const {
        return {data + first, rows, count, stride};
    }
};

// A buffer of rows * columns elements, or the begin of a longer one, as a matrix.
template <typename T>
Matrix<T> as_matrix(memory::Buffer& buffer, std::size_t rows, std::size_t columns) {
    return {reinterpret_cast<T*>(buffer.data()), rows, columns};
}
template <typename T>
Matrix<const T> as_matrix(const memory::Buffer& buffer, std::size_t rows, std::size_t columns) {
    return {reinterpret_cast<const T*>(buffer.data()), rows, columns};
}

}  // namespace zeroproof::reference
