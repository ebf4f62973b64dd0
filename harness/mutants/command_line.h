// A command line as a build system writes it, taken apart without a shell.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace zeroproof::harness {

class BadCommand : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Splits at blanks; quotes and backslashes as in a POSIX shell. Throws BadCommand for an open
// quote, and for what only a shell could do: $, `, and, unquoted, any of ; & | < > ( ) * ? ~ # { }.
std::vector<std::string> split_command(std::string_view command);

}  // namespace zeroproof::harness
