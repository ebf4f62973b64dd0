#include "suites/benchmarks/training/peer.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "harness/subjects/python_subject.h"

namespace zeroproof {

namespace {

struct Pipe {
    std::array<int, 2> ends{};
    Pipe() {
        if (pipe(ends.data()) != 0)
            throw std::system_error(errno, std::generic_category(), "a pipe to PyTorch");
    }
};

[[noreturn]] void become(const std::vector<std::string>& command) {
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execvp(words[0], words.data());
    std::perror(words[0]);
    _exit(127);
}

}  // namespace

Peer::Peer(const std::string& python, const std::vector<std::string>& options) {
    std::signal(SIGPIPE, SIG_IGN);  // a peer that has ended is noticed by what it does not say
    setenv("PYTHONPATH", harness::adapter_folder().c_str(), 1);
    std::vector<std::string> command = {harness::python_interpreter(python), "-m",
                                        "zeroproof_adapter.training_peer"};
    command.insert(command.end(), options.begin(), options.end());
    const Pipe to_child;
    const Pipe from_child;
    pid_ = fork();
    if (pid_ < 0) throw std::system_error(errno, std::generic_category(), command[0]);
    if (pid_ == 0) {
        dup2(to_child.ends[0], STDIN_FILENO);
        dup2(from_child.ends[1], STDOUT_FILENO);
        for (const int end :
             {to_child.ends[0], to_child.ends[1], from_child.ends[0], from_child.ends[1]})
            close(end);
        become(command);
    }
    close(to_child.ends[0]);
    close(from_child.ends[1]);
    to_ = fdopen(to_child.ends[1], "w");
    from_ = fdopen(from_child.ends[0], "r");
    description_ = line();
}

Peer::~Peer() {
    std::fclose(to_);  // the end of its input is the end of the peer
    std::fclose(from_);
    waitpid(pid_, nullptr, 0);
}

std::vector<double> Peer::steps(int count) {
    fmt::print(to_, "{}\n", count);
    std::fflush(to_);
    std::istringstream numbers(line());
    std::vector<double> seconds(static_cast<std::size_t>(count));
    for (double& each : seconds)
        if (!(numbers >> each)) throw std::runtime_error("the peer's answer is not understood");
    return seconds;
}

std::string Peer::line() {
    std::string text;
    for (int character = std::fgetc(from_); character != '\n'; character = std::fgetc(from_)) {
        if (character == EOF)
            throw std::runtime_error(
                "the peer has ended, for the reason given above: ci/setup --adapters makes an "
                "environment that has all it needs, and --python FILE takes another");
        text += static_cast<char>(character);
    }
    return text;
}

}  // namespace zeroproof
