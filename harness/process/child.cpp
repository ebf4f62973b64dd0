#include "harness/process/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <map>
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

    pid_t start(const std::vector<std::string>& arguments,
                const std::vector<std::string>& variables) {
        std::vector<char*> argv = pointers_to(arguments);
        argv.push_back(nullptr);
        std::vector<char*> environment = pointers_to(variables);  // the first of a name counts
        for (char** variable = environ; *variable != nullptr; ++variable)
            environment.push_back(*variable);
        environment.push_back(nullptr);
        pid_t child = -1;
        const int error =
            posix_spawnp(&child, argv[0], &actions_, &attributes_, argv.data(), environment.data());
        if (error != 0)
            throw std::system_error(error, std::generic_category(),
                                    fmt::format("cannot start {}", arguments.front()));
        return child;
    }

  private:
    static std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
        std::vector<char*> pointers;
        for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
        return pointers;
    }
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

// The parent of each process that this user may see.
std::multimap<pid_t, pid_t> children_by_parent() {
    std::multimap<pid_t, pid_t> children;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
        pid_t pid = 0;
        const std::string name = entry.path().filename();
        if (std::from_chars(name.data(), name.data() + name.size(), pid).ec != std::errc())
            continue;
        std::ifstream file(entry.path() / "stat");
        std::string line;
        std::getline(file, line);
        // "pid (name) state parent ...", where the name may hold anything.
        const std::size_t close = line.rfind(')');
        if (close == std::string::npos || close + 4 >= line.size()) continue;
        pid_t parent = 0;
        std::from_chars(line.data() + close + 4, line.data() + line.size(), parent);
        children.emplace(parent, pid);
    }
    return children;
}

// Launchers such as torchrun put their workers into sessions of their own.
std::vector<pid_t> descendants_of(pid_t root) {
    const auto children = children_by_parent();
    std::vector<pid_t> all{root};
    for (std::size_t i = 0; i < all.size(); ++i) {
        const auto [begin, end] = children.equal_range(all[i]);
        for (auto at = begin; at != end; ++at) all.push_back(at->second);
    }
    all.erase(all.begin());
    return all;
}

ChildEnd end_of(int status) {
    if (WIFSIGNALED(status)) return {ChildEnd::How::signalled, WTERMSIG(status)};
    return {ChildEnd::How::exited, WEXITSTATUS(status)};
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

Child::Child(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
             const std::filesystem::path& output, const std::vector<std::string>& variables) {
    if (caught_signal != 0) throw Interrupted("interrupted");
    pid_ = SpawnPlan(folder, output).start(arguments, variables);
}

Child::~Child() {
    kill();
}

std::optional<ChildEnd> Child::poll() {
    if (end_) return end_;
    siginfo_t ended{};
    if (waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        ended.si_pid == pid_) {
        ::kill(-pid_, SIGKILL);  // what it has left behind in its group
        int status = 0;
        reap(pid_, 0, status);
        end_ = end_of(status);
        return end_;
    }
    if (caught_signal != 0) {
        kill();
        throw Interrupted("interrupted");
    }
    return {};
}

void Child::kill() {
    if (end_) return;
    const std::vector<pid_t> descendants = descendants_of(pid_);
    ::kill(-pid_, SIGKILL);
    for (const pid_t descendant : descendants) ::kill(descendant, SIGKILL);
    int status = 0;
    reap(pid_, 0, status);
    end_ = ChildEnd{ChildEnd::How::timed_out, 0};
}

ChildEnd run_child(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
                   const std::filesystem::path& output, std::chrono::milliseconds limit) {
    Child child(arguments, folder, output);
    const auto deadline = Clock::now() + limit;
    for (auto pause = std::chrono::milliseconds(1);;
         pause = std::min(2 * pause, std::chrono::milliseconds(20))) {
        if (const auto end = child.poll()) return *end;
        if (Clock::now() >= deadline) {
            child.kill();
            return {ChildEnd::How::timed_out, 0};
        }
        std::this_thread::sleep_for(pause);
    }
}

}  // namespace zeroproof::harness
