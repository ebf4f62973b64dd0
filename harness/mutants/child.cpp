#include "harness/mutants/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <thread>

extern char** environ;

namespace zeroproof::harness {

namespace {

using Clock = std::chrono::steady_clock;

std::atomic<int> caught_signal = 0;  // without a lock, so that a handler may write it
static_assert(std::atomic<int>::is_always_lock_free);

void note_signal(int number) {
    caught_signal = number;
}

// What posix_spawn is told; gone with its owner.
class SpawnPlan {
  public:
    SpawnPlan(const std::filesystem::path& folder, const std::filesystem::path& output) {
        require(posix_spawn_file_actions_init(&actions_));
        require(posix_spawn_file_actions_addchdir_np(&actions_, folder.c_str()));
        require(
            posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0));
        require(posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, output.c_str(),
                                                 O_WRONLY | O_CREAT | O_TRUNC, 0666));
        require(posix_spawn_file_actions_adddup2(&actions_, STDOUT_FILENO, STDERR_FILENO));
        require(posix_spawnattr_init(&attributes_));
        require(posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP));
        require(posix_spawnattr_setpgroup(&attributes_, 0));
    }
    SpawnPlan(const SpawnPlan&) = delete;
    SpawnPlan& operator=(const SpawnPlan&) = delete;
    ~SpawnPlan() {
        posix_spawn_file_actions_destroy(&actions_);
        posix_spawnattr_destroy(&attributes_);
    }

    pid_t start(const std::vector<std::string>& arguments) {
        std::vector<char*> argv;
        for (const std::string& argument : arguments)
            argv.push_back(const_cast<char*>(argument.c_str()));
        argv.push_back(nullptr);
        pid_t child = -1;
        const int error =
            posix_spawnp(&child, argv[0], &actions_, &attributes_, argv.data(), environ);
        if (error != 0)
            throw std::system_error(error, std::generic_category(),
                                    fmt::format("cannot start {}", arguments.front()));
        return child;
    }

  private:
    static void require(int error) {
        if (error != 0) throw std::system_error(error, std::generic_category(), "posix_spawn");
    }
    posix_spawn_file_actions_t actions_;
    posix_spawnattr_t attributes_;
};

int reap(pid_t child, int flags, int& status) {
    pid_t ended;
    do ended = waitpid(child, &status, flags);
    while (ended < 0 && errno == EINTR);
    if (ended < 0) throw std::system_error(errno, std::generic_category(), "waitpid");
    return ended;
}

void kill_group(pid_t child) {
    kill(-child, SIGKILL);  // it leads a group of its own
    int ignored = 0;
    reap(child, 0, ignored);
}

}  // namespace

struct ChildGuard::Previous {
    struct sigaction interrupt;
    struct sigaction terminate;
};

ChildGuard::ChildGuard() : previous_(new Previous) {
    caught_signal = 0;
    struct sigaction action {};
    action.sa_handler = note_signal;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, &previous_->interrupt);
    sigaction(SIGTERM, &action, &previous_->terminate);
}

ChildGuard::~ChildGuard() {
    sigaction(SIGINT, &previous_->interrupt, nullptr);
    sigaction(SIGTERM, &previous_->terminate, nullptr);
    delete previous_;
}

int ChildGuard::signal() {
    return caught_signal;
}

ChildEnd run_child(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
                   const std::filesystem::path& output, std::chrono::milliseconds limit) {
    if (caught_signal != 0) throw Interrupted("interrupted");
    const pid_t child = SpawnPlan(folder, output).start(arguments);
    const auto deadline = Clock::now() + limit;
    int status = 0;
    for (auto pause = std::chrono::milliseconds(1); reap(child, WNOHANG, status) == 0;
         pause = std::min(2 * pause, std::chrono::milliseconds(20))) {
        if (caught_signal != 0) {
            kill_group(child);
            throw Interrupted("interrupted");
        }
        if (Clock::now() >= deadline) {
            kill_group(child);
            return {ChildEnd::How::timed_out, 0};
        }
        std::this_thread::sleep_for(pause);
    }
    if (WIFSIGNALED(status)) return {ChildEnd::How::signalled, WTERMSIG(status)};
    return {ChildEnd::How::exited, WEXITSTATUS(status)};
}

}  // namespace zeroproof::harness
