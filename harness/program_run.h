// For tests: the program as a user runs it.
#pragma once

#include <fmt/format.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace zeroproof::harness {

struct Ran {
    int code;            // -1 if a signal ended it
    std::string output;  // both streams
};

// `arguments` as a shell takes them.
inline Ran run_program(const std::string& program, const std::string& arguments) {
    FILE* pipe = popen(fmt::format("{} {} 2>&1", program, arguments).c_str(), "r");
    if (pipe == nullptr) return {-1, "cannot start a shell"};
    std::string output;
    std::array<char, 4096> block;
    for (std::size_t n; (n = fread(block.data(), 1, block.size(), pipe)) > 0;)
        output.append(block.data(), n);
    const int status = pclose(pipe);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

}  // namespace zeroproof::harness
