#include "harness/protocol/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "harness/protocol/whole_file.h"
#include "memory/dtype.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {

namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

using scenarios::BadInput;
using scenarios::Json;

constexpr std::uint64_t kMostHeaderBytes = 100'000'000;  // of the format
constexpr std::size_t kMostDimensions = 32;
constexpr std::size_t kPrefix = sizeof(std::uint64_t);

struct TypeRow {
    std::string_view name;
    std::uint64_t width;
};
constexpr std::array<TypeRow, 6> kTypes = {
    {{"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F64", 8}, {"I32", 4}, {"U8", 1}}};

std::uint64_t width_of(TensorType type) {
    return kTypes[static_cast<std::size_t>(type)].width;
}

// The product, unless it is above `most`.
std::optional<std::uint64_t> elements_of(const Shape& shape, std::uint64_t most) {
    if (std::ranges::count(shape, std::size_t{0}) > 0) return 0;
    std::uint64_t product = 1;
    for (const std::size_t size : shape) {
        if (size > most / product) return std::nullopt;
        product *= size;
    }
    return product;
}

// Reads a header as it comes: a document in memory would take many times the text, and its objects
// search for each key in all those before.
class HeaderHandler : public nlohmann::json_sax<Json> {
  public:
    HeaderHandler(const std::string& file, std::uint64_t data_bytes)
        : file_(file), data_bytes_(data_bytes) {}

    std::map<std::string, TensorPlace, std::less<>> take() { return std::move(tensors_); }

    bool null() override { refuse_value(); }
    bool boolean(bool) override { refuse_value(); }
    bool number_integer(number_integer_t) override { refuse_value(); }
    bool number_float(number_float_t, const string_t&) override { refuse_value(); }
    bool binary(binary_t&) override { refuse_value(); }

    bool number_unsigned(number_unsigned_t value) override {
        if (place_ == Place::shape) {
            if (place_of_tensor_.shape.size() == kMostDimensions)
                refuse(fmt::format("more than {} dimensions", kMostDimensions));
            place_of_tensor_.shape.push_back(value);
        } else if (place_ == Place::offsets && offsets_ < 2) {
            (offsets_++ == 0 ? place_of_tensor_.begin : place_of_tensor_.end) = value;
        } else {
            refuse_value();
        }
        return true;
    }

    bool string(string_t& value) override {
        if (place_ == Place::metadata) return true;
        if (place_ != Place::tensor || key_ != "dtype") refuse_value();
        const auto row = std::ranges::find(kTypes, std::string_view(value), &TypeRow::name);
        if (row == kTypes.end())
            refuse(fmt::format("the type {}; known are F32, F16, BF16, F64, I32 and U8",
                               shown(value)));
        place_of_tensor_.type = static_cast<TensorType>(row - kTypes.begin());
        return true;
    }

    bool start_object(std::size_t) override {
        if (place_ == Place::nothing) {
            place_ = Place::header;
        } else if (place_ == Place::header) {
            place_ = name_ == "__metadata__" ? Place::metadata : Place::tensor;
            place_of_tensor_ = {};
            offsets_ = 0;
            seen_.clear();
        } else {
            refuse_value();
        }
        return true;
    }

    bool key(string_t& value) override {
        if (place_ == Place::header) {
            name_ = value;
            if (name_ == "__metadata__" ? had_metadata_ : tensors_.contains(name_))
                refuse("stands twice in the header");
            if (name_.empty()) refuse("a tensor without a name");
            had_metadata_ = had_metadata_ || name_ == "__metadata__";
        } else if (place_ == Place::tensor) {
            key_ = value;
            if (std::ranges::count(seen_, key_) > 0) refuse(fmt::format("\"{}\" twice", key_));
            if (key_ != "dtype" && key_ != "shape" && key_ != "data_offsets")
                refuse(fmt::format("the key {}; known are dtype, shape and data_offsets",
                                   shown(key_)));
            seen_.push_back(key_);
        }
        return true;
    }

    bool end_object() override {
        if (place_ == Place::tensor) {
            if (seen_.size() != 3) refuse("dtype, shape and data_offsets are needed");
            check();
            tensors_.emplace(name_, std::move(place_of_tensor_));
        }
        place_ = place_ == Place::header ? Place::end : Place::header;
        return true;
    }

    bool start_array(std::size_t) override {
        if (place_ != Place::tensor || key_ == "dtype") refuse_value();
        place_ = key_ == "shape" ? Place::shape : Place::offsets;
        return true;
    }

    bool end_array() override {
        if (place_ == Place::offsets && offsets_ != 2) refuse("data_offsets are two numbers");
        place_ = Place::tensor;
        return true;
    }

    bool parse_error(std::size_t, const std::string&, const Json::exception& error) override {
        throw BadInput(fmt::format("{}: header: {}", file_, error.what()));
    }

  private:
    enum class Place { nothing, header, metadata, tensor, shape, offsets, end };

    [[noreturn]] void refuse(const std::string& why) const {
        throw BadInput(fmt::format("{}: tensor {}: {}", file_, shown(name_), why));
    }
    [[noreturn]] void refuse_value() const { refuse("a value where none of its type may stand"); }

    void check() const {
        const TensorPlace& place = place_of_tensor_;
        if (place.begin > place.end || place.end > data_bytes_)
            refuse(fmt::format("the offsets {} to {} in {} bytes of data", place.begin, place.end,
                               data_bytes_));
        const std::uint64_t width = width_of(place.type);
        const auto elements = elements_of(place.shape, data_bytes_ / width);
        if (!elements || *elements * width != place.end - place.begin)
            refuse(fmt::format("{} bytes for the shape {} of {}", place.end - place.begin,
                               to_text(place.shape), name_of(place.type)));
    }

    const std::string& file_;
    std::uint64_t data_bytes_;
    Place place_ = Place::nothing;
    std::string name_;
    std::string key_;
    std::vector<std::string> seen_;
    bool had_metadata_ = false;
    int offsets_ = 0;
    TensorPlace place_of_tensor_;
    std::map<std::string, TensorPlace, std::less<>> tensors_;
};

// Every byte of the data belongs to one tensor: what overlaps or is left over is no mistake that a
// writer makes.
void check_cover(const std::string& file,
                 const std::map<std::string, TensorPlace, std::less<>>& tensors,
                 std::uint64_t data_bytes) {
    std::vector<const std::pair<const std::string, TensorPlace>*> sorted;
    for (const auto& row : tensors) sorted.push_back(&row);
    std::ranges::sort(
        sorted, {}, [](const auto* row) { return std::pair(row->second.begin, row->second.end); });
    std::uint64_t end = 0;
    for (const auto* row : sorted) {
        if (row->second.begin != end)
            throw BadInput(fmt::format("{}: tensor {}: begins at {}; the one before ends at {}",
                                       file, shown(row->first), row->second.begin, end));
        end = row->second.end;
    }
    if (end != data_bytes)
        throw BadInput(fmt::format("{}: {} bytes after the last tensor", file, data_bytes - end));
}

template <typename Element>
std::vector<float> widened(std::span<const std::byte> data, float (*widen)(Element)) {
    std::vector<float> values(data.size() / sizeof(Element));
    for (std::size_t i = 0; i < values.size(); ++i) {
        Element element;
        std::memcpy(&element, data.data() + i * sizeof(Element), sizeof(Element));
        values[i] = widen(element);
    }
    return values;
}

float rounded(double value) {
    // The conversion of larger values is left open by the language.
    if (value >= 0x1.ffffffp127) return std::numeric_limits<float>::infinity();
    if (value <= -0x1.ffffffp127) return -std::numeric_limits<float>::infinity();
    return static_cast<float>(value);
}

// Of a span's memory.
std::string_view bytes_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string_view name_of(TensorType type) {
    return kTypes[static_cast<std::size_t>(type)].name;
}

std::string shown(std::string_view name) {
    constexpr std::size_t kMost = 200;
    return Json(std::string(name.substr(0, kMost)))
               .dump(-1, ' ', false, Json::error_handler_t::replace) +
           (name.size() > kMost ? "..." : "");
}

std::string to_text(const Shape& shape) {
    return fmt::format("[{}]", fmt::join(shape, ", "));
}

SafetensorsReader::SafetensorsReader(UntrustedFile file) : file_(std::move(file)) {
    const auto refuse = [&](const std::string& why) {
        throw BadInput(fmt::format("{}: {}", file_.name(), why));
    };
    if (file_.size() < kPrefix)
        refuse(fmt::format("{} bytes are no safetensors file", file_.size()));
    std::uint64_t header_bytes = 0;
    file_.read(0, std::as_writable_bytes(std::span(&header_bytes, 1)));
    if (header_bytes > file_.size() - kPrefix || header_bytes > kMostHeaderBytes)
        refuse(fmt::format("a header of {} bytes, by its own word, in a file of {}", header_bytes,
                           file_.size()));
    std::string header(header_bytes, '\0');
    file_.read(kPrefix, std::as_writable_bytes(std::span(header)));
    if (!header.starts_with('{')) refuse("the header is no JSON object");
    data_begin_ = kPrefix + header_bytes;
    const std::uint64_t data_bytes = file_.size() - data_begin_;
    HeaderHandler handler(file_.name(), data_bytes);
    Json::sax_parse(header, &handler);
    tensors_ = handler.take();
    check_cover(file_.name(), tensors_, data_bytes);
}

const TensorPlace& SafetensorsReader::at(std::string_view name) const {
    const auto at = tensors_.find(name);
    if (at == tensors_.end())
        throw BadInput(fmt::format("{}: tensor {}: is missing", file_.name(), shown(name)));
    return at->second;
}

std::vector<std::byte> SafetensorsReader::data_of(const TensorPlace& place) const {
    std::vector<std::byte> data(place.end - place.begin);
    file_.read(data_begin_ + place.begin, data);
    return data;
}

std::vector<float> SafetensorsReader::floats(std::string_view name,
                                             std::span<const Shape> shapes) const {
    const TensorPlace& place = at(name);
    if (std::ranges::find(shapes, place.shape) == shapes.end()) {
        std::vector<std::string> texts;
        for (const Shape& shape : shapes)  // a vector's own shape is flat
            if (std::string text = to_text(shape); std::ranges::find(texts, text) == texts.end())
                texts.push_back(std::move(text));
        throw BadInput(fmt::format("{}: tensor {}: has the shape {}; expected is {}", file_.name(),
                                   shown(name), to_text(place.shape), fmt::join(texts, " or ")));
    }
    switch (place.type) {
        case TensorType::f32: {
            std::vector<float> values((place.end - place.begin) / sizeof(float));
            file_.read(data_begin_ + place.begin, std::as_writable_bytes(std::span(values)));
            return values;
        }
        case TensorType::f16: return widened<memory::Half>(data_of(place), memory::to_float);
        case TensorType::bf16: return widened<memory::BFloat16>(data_of(place), memory::to_float);
        case TensorType::f64: return widened<double>(data_of(place), rounded);
        case TensorType::i32:
        case TensorType::u8: break;
    }
    throw BadInput(fmt::format("{}: tensor {}: has the type {}; expected is F32, F16, BF16 or F64",
                               file_.name(), shown(name), name_of(place.type)));
}

std::vector<float> SafetensorsReader::floats(std::string_view name, const Shape& shape) const {
    return floats(name, std::span(&shape, 1));
}

std::vector<std::uint8_t> SafetensorsReader::bytes(std::string_view name,
                                                   const Shape& shape) const {
    const TensorPlace& place = at(name);
    if (place.type != TensorType::u8 || place.shape != shape)
        throw BadInput(fmt::format("{}: tensor {}: is {} {}; expected is U8 {}", file_.name(),
                                   shown(name), name_of(place.type), to_text(place.shape),
                                   to_text(shape)));
    std::vector<std::uint8_t> values(place.end - place.begin);
    file_.read(data_begin_ + place.begin, std::as_writable_bytes(std::span(values)));
    return values;
}

void SafetensorsWriter::add(
    std::string name, Shape shape, TensorType type, std::uint64_t width,
    std::function<void(const std::function<void(std::string_view)>&)> write) {
    const auto elements = elements_of(shape, std::uint64_t{1} << 40);
    if (!elements) throw std::logic_error(fmt::format("tensor {} is too large", shown(name)));
    if (name.empty() || name == "__metadata__" || !places_.emplace(name, tensors_.size()).second)
        throw std::logic_error(fmt::format("a tensor may not be named {}", shown(name)));
    tensors_.push_back(
        {std::move(name), type, std::move(shape), *elements * width, std::move(write)});
}

template <typename Element>
void SafetensorsWriter::add_values(std::string name, Shape shape, TensorType type,
                                   std::span<const Element> values) {
    if (elements_of(shape, values.size()) != values.size())
        throw std::logic_error(
            fmt::format("tensor {}: {} values for {}", shown(name), values.size(), to_text(shape)));
    add(std::move(name), std::move(shape), type, sizeof(Element),
        [values](const auto& write) { write(bytes_of(std::as_bytes(values))); });
}

void SafetensorsWriter::add(std::string name, Shape shape, std::span<const float> values) {
    add_values(std::move(name), std::move(shape), TensorType::f32, values);
}

void SafetensorsWriter::add(std::string name, Shape shape, std::span<const double> values) {
    add_values(std::move(name), std::move(shape), TensorType::f64, values);
}

void SafetensorsWriter::add(std::string name, Shape shape, std::span<const std::int32_t> values) {
    add_values(std::move(name), std::move(shape), TensorType::i32, values);
}

void SafetensorsWriter::add(std::string name, Shape shape, std::span<const std::uint8_t> values) {
    add_values(std::move(name), std::move(shape), TensorType::u8, values);
}

void SafetensorsWriter::add(std::string name, Shape shape,
                            std::function<void(const Append&)> fill) {
    add(std::move(name), std::move(shape), TensorType::f32, sizeof(float),
        [fill = std::move(fill)](const auto& write) {
            fill([&](std::span<const float> values) { write(bytes_of(std::as_bytes(values))); });
        });
}

std::string SafetensorsWriter::header() const {
    // By hand: an ordered document would search for each name in all those before.
    std::string header = "{";
    if (!notes_.empty()) header += fmt::format(R"("__metadata__":{})", Json(notes_).dump());
    std::uint64_t end = 0;
    for (const Tensor& tensor : tensors_) {
        header += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                              header.size() > 1 ? "," : "", Json(tensor.name).dump(),
                              name_of(tensor.type), fmt::join(tensor.shape, ","), end,
                              end + tensor.bytes);
        end += tensor.bytes;
    }
    header += "}";
    header.resize((header.size() + kPrefix - 1) / kPrefix * kPrefix, ' ');  // aligns the data
    return header;
}

void SafetensorsWriter::write_to(const std::function<void(std::string_view)>& append) const {
    const std::string text = header();
    const std::uint64_t header_bytes = text.size();
    append(bytes_of(std::as_bytes(std::span(&header_bytes, 1))));
    append(text);
    for (const Tensor& tensor : tensors_) {
        std::uint64_t written = 0;
        tensor.write([&](std::string_view bytes) {
            written += bytes.size();
            append(bytes);
        });
        if (written != tensor.bytes)
            throw std::logic_error(fmt::format("tensor {}: {} bytes filled in for {}",
                                               shown(tensor.name), written, tensor.bytes));
    }
}

void SafetensorsWriter::write(const std::filesystem::path& path) const {
    WholeFile file(path);
    write_to([&](std::string_view piece) { file.write(piece); });
    file.finish();
}

std::string SafetensorsWriter::bytes() const {
    std::string all;
    write_to([&](std::string_view piece) { all += piece; });
    return all;
}

}  // namespace zeroproof::harness
