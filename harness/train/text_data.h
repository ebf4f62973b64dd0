// A text as a language model of bytes sees it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zeroproof::harness {

struct TextFile {
    std::string_view name;
    std::string_view text;
};
// Texts put into the program when it is built; the first, this program's licence, is what
// `zeroproof train` reads where it is given nothing else.
const std::vector<TextFile>& text_files();

class TextData {
  public:
    // `name` is for messages. Throws scenarios::BadInput for a text of no sample: one takes
    // `sequence` bytes, and each the one that follows it.
    TextData(std::string text, const std::string& name, std::size_t sequence);
    // Throws scenarios::BadInput for a file that is missing, no file, empty or not readable.
    static TextData of_file(const std::string& file, std::size_t sequence);

    std::size_t bytes() const { return text_.size(); }
    // Sample `number` of the whole run, whichever rank takes it: from a place that the seed and the
    // number alone determine.
    void sample(std::uint64_t seed, std::uint64_t number, std::span<std::int32_t> tokens,
                std::span<std::int32_t> targets) const;

  private:
    std::string text_;
    std::size_t sequence_;
};

}  // namespace zeroproof::harness
