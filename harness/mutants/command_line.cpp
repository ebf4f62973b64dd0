#include "harness/mutants/command_line.h"

#include <fmt/format.h>

namespace zeroproof::harness {

namespace {

constexpr std::string_view kBlanks = " \t\n";
constexpr std::string_view kForShells = ";&|<>()*?#{}~$`";

class Splitter {
  public:
    explicit Splitter(std::string_view text) : text_(text) {}

    std::vector<std::string> split() {
        for (; at_ < text_.size(); ++at_) {
            const char c = text_[at_];
            if (kBlanks.find(c) != std::string_view::npos)
                end_word();
            else
                take(c);
        }
        end_word();
        return std::move(words_);
    }

  private:
    void take(char c) {
        in_word_ = true;
        if (c == '\'')
            single_quoted();
        else if (c == '"')
            double_quoted();
        else if (c == '\\')
            word_ += next();
        else if (kForShells.find(c) != std::string_view::npos)
            refuse(fmt::format("'{}' needs a shell", c));
        else
            word_ += c;
    }

    void single_quoted() {
        for (char c = next(); c != '\''; c = next()) word_ += c;
    }

    void double_quoted() {
        for (char c = next(); c != '"'; c = next()) {
            if (c == '$' || c == '`') refuse(fmt::format("'{}' needs a shell", c));
            if (c == '\\') {
                c = next();
                if (c != '"' && c != '\\' && c != '$' && c != '`') word_ += '\\';
            }
            word_ += c;
        }
    }

    char next() {
        if (++at_ >= text_.size()) refuse("it ends inside of a quote");
        return text_[at_];
    }

    void end_word() {
        if (in_word_) words_.push_back(std::move(word_));
        word_.clear();
        in_word_ = false;
    }

    [[noreturn]] void refuse(const std::string& why) const {
        throw BadCommand(fmt::format("{}: {}", why, text_));
    }

    std::string_view text_;
    std::size_t at_ = 0;
    std::string word_;
    bool in_word_ = false;
    std::vector<std::string> words_;
};

}  // namespace

std::vector<std::string> split_command(std::string_view command) {
    return Splitter(command).split();
}

}  // namespace zeroproof::harness
