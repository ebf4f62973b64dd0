#include "harness/writers/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace zeroproof::harness {

namespace {

constexpr std::string_view kReplacement = "\uFFFD";

struct Character {
    std::uint32_t code;
    std::size_t bytes;
    bool valid;
};

// The first character of a text that is not empty. A byte that begins none is one invalid
// character.
Character decode(std::string_view text) {
    const auto byte = [&](std::size_t i) {
        return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i]));
    };
    const std::uint32_t lead = byte(0);
    if (lead < 0x80) return {lead, 1, true};
    const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {lead, 1, false};
    std::uint32_t code = lead & (0xFFu >> (bytes + 1));
    for (std::size_t i = 1; i < bytes; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return {lead, 1, false};
        code = code << 6 | (byte(i) & 0x3F);
    }
    const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
    const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    if (overlong || surrogate || code > 0x10FFFF) return {lead, 1, false};
    // XML 1.0 has no place for these two.
    return {code, bytes, code != 0xFFFE && code != 0xFFFF};
}

std::string made_printable(std::string_view text, bool lines) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const Character character = decode(text);
        // Those from 0x80 begin an escape sequence on some terminals.
        const bool control =
            character.code < 0x20 || (character.code >= 0x7F && character.code < 0xA0);
        if (!character.valid)
            out += kReplacement;
        else if (!control || (lines && character.code == '\n'))
            out += text.substr(0, character.bytes);
        else if (character.code == '\n')
            out += "\\n";
        else if (character.code == '\r')
            out += "\\r";
        else if (character.code == '\t')
            out += "\\t";
        else
            out += fmt::format("\\x{:02x}", character.code);
        text.remove_prefix(character.bytes);
    }
    return out;
}

bool begins_a_character(char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

// Where to break a line that is too long: the last space that leaves no more than `columns`, or
// else the first; npos if there is none.
std::size_t break_of(std::string_view line, std::size_t columns) {
    std::size_t best = std::string_view::npos;
    std::size_t column = 0;
    const std::size_t text_begins = line.find_first_not_of(' ');
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] == ' ' && i > text_begins) {
            if (column <= columns || best == std::string_view::npos) best = i;
        }
        if (column > columns && best != std::string_view::npos) break;
        column += begins_a_character(line[i]);
    }
    return best;
}

}  // namespace

std::string printable(std::string_view text) {
    return made_printable(text, false);
}

std::string printable_lines(std::string_view text) {
    return made_printable(text, true);
}

std::size_t columns_of(std::string_view text) {
    return static_cast<std::size_t>(std::ranges::count_if(text, begins_a_character));
}

std::string left_aligned(std::string_view text, std::size_t columns) {
    const std::size_t width = columns_of(text);
    return std::string(text) + std::string(columns > width ? columns - width : 0, ' ');
}

std::string right_aligned(std::string_view text, std::size_t columns) {
    const std::size_t width = columns_of(text);
    return std::string(columns > width ? columns - width : 0, ' ') + std::string(text);
}

std::vector<std::string> wrapped(std::string_view text, std::size_t columns) {
    std::vector<std::string> lines;
    for (bool more = true; more;) {
        const std::size_t end = text.find('\n');
        more = end != std::string_view::npos;
        std::string_view line = text.substr(0, end);
        if (more) text.remove_prefix(end + 1);
        while (columns_of(line) > columns) {
            const std::size_t at = break_of(line, columns);
            if (at == std::string_view::npos) break;
            lines.emplace_back(line.substr(0, at));
            line.remove_prefix(std::min(line.find_first_not_of(' ', at), line.size()));
        }
        lines.emplace_back(line);
    }
    return lines;
}

std::string single_quoted(std::string_view text) {
    std::string out = "'";
    for (const char c : text) {
        if (c == '\'')
            out += "'\\''";
        else
            out += c;
    }
    return out + "'";
}

std::string shell_quoted(std::string_view text) {
    constexpr std::string_view plain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=,:@%+-";
    const bool is_plain = !text.empty() && text.find_first_not_of(plain) == std::string_view::npos;
    return is_plain ? std::string(text) : single_quoted(text);
}

std::string counted(std::size_t count, std::string_view noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string number(double value) {
    return value == std::floor(value) ? fmt::format("{:.0f}", value) : fmt::format("{:.2f}", value);
}

}  // namespace zeroproof::harness
