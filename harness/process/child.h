// A child process under a watchdog.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace zeroproof::harness {

// SIGINT or SIGTERM came while a ChildGuard lives: the children that were started have been killed.
class Interrupted : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// While one lives, SIGINT and SIGTERM end the children and make run_child throw Interrupted,
// instead of ending this process: its owner can clean up.
class ChildGuard {
  public:
    ChildGuard();
    ChildGuard(const ChildGuard&) = delete;
    ChildGuard& operator=(const ChildGuard&) = delete;
    ~ChildGuard();

    // The signal that came, or 0.
    static int signal();

  private:
    struct Previous;
    Previous* previous_;
};

struct ChildEnd {
    enum class How { exited, signalled, timed_out } how = How::exited;
    int code = 0;  // the exit code, or the number of the signal

    bool exited_with(int wanted) const { return how == How::exited && code == wanted; }
};

// A program that runs, with its descendants. Ended with its owner.
class Child {
  public:
    // Found by PATH, without a shell and in a process group of its own, both outputs into the file
    // `output`, `variables` ("NAME=value") added to the environment. Throws std::system_error if it
    // cannot be started, and Interrupted.
    Child(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
          const std::filesystem::path& output, const std::vector<std::string>& variables = {});
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child();

    // How it has ended, or nothing while it runs. Throws Interrupted after ending it.
    std::optional<ChildEnd> poll();
    // Ends it and all its descendants, also those that have gone into groups of their own.
    void kill();

  private:
    pid_t pid_;
    std::optional<ChildEnd> end_;
};

// Runs a program, found by PATH, without a shell and in a process group of its own, both outputs
// into the file `output`. After `limit` the group is killed. Throws std::system_error if the
// program cannot be started. Several threads may call.
ChildEnd run_child(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
                   const std::filesystem::path& output, std::chrono::milliseconds limit);

}  // namespace zeroproof::harness
