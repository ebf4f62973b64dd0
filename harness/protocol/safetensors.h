// Tensors in files: the format of huggingface/safetensors, version 0.x. Eight bytes with the length
// of the header, the header in JSON, the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/protocol/untrusted_file.h"

namespace zeroproof::harness {

enum class TensorType { f32, f16, bf16, f64, i32, u8 };
std::string_view name_of(TensorType type);  // as in the header, "F32"

// What others have named, as it may stand in a message: quoted, on one line and not too long.
std::string shown(std::string_view name);

using Shape = std::vector<std::size_t>;
std::string to_text(const Shape& shape);  // "[2, 3]"

struct TensorPlace {
    TensorType type = TensorType::f32;
    Shape shape;
    std::uint64_t begin = 0;  // in the data
    std::uint64_t end = 0;
};

// Takes what anybody may have written. Keeps the header alone, and allocates no more than the file
// holds: lengths, shapes and offsets are believed once they agree with its size and each other.
class SafetensorsReader {
  public:
    // Throws scenarios::BadInput, as do the others: names the file, the tensor and what is wrong.
    explicit SafetensorsReader(UntrustedFile file);

    const std::map<std::string, TensorPlace, std::less<>>& tensors() const { return tensors_; }
    bool has(std::string_view name) const { return tensors_.contains(name); }
    // Of any of the floating types. F16 and BF16 are widened, which is exact; F64 is rounded to the
    // nearest float, to infinity beyond the largest. The shape must be one of `shapes`.
    std::vector<float> floats(std::string_view name, std::span<const Shape> shapes) const;
    std::vector<float> floats(std::string_view name, const Shape& shape) const;
    std::vector<std::uint8_t> bytes(std::string_view name, const Shape& shape) const;

  private:
    const TensorPlace& at(std::string_view name) const;
    std::vector<std::byte> data_of(const TensorPlace& place) const;

    UntrustedFile file_;
    std::uint64_t data_begin_ = 0;
    std::map<std::string, TensorPlace, std::less<>> tensors_;
};

// Gathers tensors and writes them at once, the file whole or not at all.
class SafetensorsWriter {
  public:
    // Appends a piece of the tensor's values.
    using Append = std::function<void(std::span<const float>)>;

    // Values stay where they are until `write`. Throws std::logic_error for a name that is taken or
    // a number of values that is not that of the shape.
    void add(std::string name, Shape shape, std::span<const float> values);
    void add(std::string name, Shape shape, std::span<const double> values);
    void add(std::string name, Shape shape, std::span<const std::int32_t> values);
    void add(std::string name, Shape shape, std::span<const std::uint8_t> values);
    // `fill` is called in `write`, for tensors that need not be in memory as a whole.
    void add(std::string name, Shape shape, std::function<void(const Append&)> fill);

    // A text beside the tensors, in what the format calls __metadata__.
    void note(std::string key, std::string text) {
        notes_.emplace(std::move(key), std::move(text));
    }

    // Throws Unwritable.
    void write(const std::filesystem::path& path) const;
    // The same bytes, for whoever writes them in another way.
    std::string bytes() const;

  private:
    struct Tensor {
        std::string name;
        TensorType type;
        Shape shape;
        std::uint64_t bytes;
        std::function<void(const std::function<void(std::string_view)>&)> write;
    };
    void add(std::string name, Shape shape, TensorType type, std::uint64_t width,
             std::function<void(const std::function<void(std::string_view)>&)> write);
    template <typename Element>
    void add_values(std::string name, Shape shape, TensorType type,
                    std::span<const Element> values);
    std::string header() const;
    void write_to(const std::function<void(std::string_view)>& append) const;

    std::map<std::string, std::string> notes_;
    std::vector<Tensor> tensors_;
    std::map<std::string, std::size_t, std::less<>> places_;
};

}  // namespace zeroproof::harness
