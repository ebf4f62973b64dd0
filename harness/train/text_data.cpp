#include "harness/train/text_data.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "reference/tensor/philox.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {

TextData::TextData(std::string text, const std::string& name, std::size_t sequence)
    : text_(std::move(text)), sequence_(sequence) {
    if (text_.size() <= sequence)
        throw scenarios::BadInput(fmt::format(
            "{}: has {} bytes; one sample of this model takes {}: give a longer text, or "
            "a model of shorter sequences",
            name, text_.size(), sequence + 1));
}

TextData TextData::of_file(const std::string& file, std::size_t sequence) {
    std::error_code error;
    const auto status = std::filesystem::status(file, error);
    if (!std::filesystem::exists(status))
        throw scenarios::BadInput(fmt::format("{}: there is no such file", file));
    if (std::filesystem::is_directory(status))
        throw scenarios::BadInput(fmt::format("{}: is a folder, not a text", file));
    std::string text = scenarios::read_text_file(file);
    if (text.empty()) throw scenarios::BadInput(fmt::format("{}: is empty", file));
    return {std::move(text), file, sequence};
}

void TextData::sample(std::uint64_t seed, std::uint64_t number, std::span<std::int32_t> tokens,
                      std::span<std::int32_t> targets) const {
    constexpr std::uint32_t kOfData = 0xDA7A;
    const auto random = reference::philox(
        {static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32), kOfData, 0},
        {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
    const std::uint64_t places = text_.size() - sequence_;
    const std::uint64_t begin = ((std::uint64_t{random[0]} << 32) | random[1]) % places;
    const auto byte = [&](std::uint64_t at) {
        return static_cast<std::int32_t>(static_cast<unsigned char>(text_[at]));
    };
    for (std::size_t i = 0; i < sequence_; ++i) {
        tokens[i] = byte(begin + i);
        targets[i] = byte(begin + i + 1);
    }
}

}  // namespace zeroproof::harness
