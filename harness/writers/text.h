// Text for people: made harmless, wrapped and aligned.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace zeroproof::harness {

// What a subject says may hold anything. Valid UTF-8 comes out, which any terminal and XML 1.0 can
// take: bytes that are none become U+FFFD, control characters visible, as in "\x1b".
std::string printable(std::string_view text);
// Line feeds stay.
std::string printable_lines(std::string_view text);

// Of printable text, one for each code point: none of ours is wider.
std::size_t columns_of(std::string_view text);
std::string left_aligned(std::string_view text, std::size_t columns);
std::string right_aligned(std::string_view text, std::size_t columns);
// Broken at spaces; a longer word stays whole.
std::vector<std::string> wrapped(std::string_view text, std::size_t columns);

// As one word of a POSIX shell.
std::string shell_quoted(std::string_view text);
// Quoted even if it need not be.
std::string single_quoted(std::string_view text);

// "1 case", "2 cases".
std::string counted(std::size_t count, std::string_view noun);
// Without a fraction where there is none, otherwise with two digits.
std::string number(double value);

}  // namespace zeroproof::harness
