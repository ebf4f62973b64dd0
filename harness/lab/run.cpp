#include "harness/lab/run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <system_error>

#include "harness/lab/node_shell.h"
#include "harness/lab/processes.h"
#include "harness/lab/requirements.h"
#include "harness/lab/state.h"
#include "harness/lab/take_down.h"
#include "harness/process/child.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kStepLimit{30};
// For mpirun to end its ranks in good order.
constexpr std::chrono::seconds kGrace{5};

// While one lives, signals that would end this process wait to be taken.
class TakenSignals {
  public:
    TakenSignals() {
        sigemptyset(&taken_);
        for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&taken_, number);
        sigprocmask(SIG_BLOCK, &taken_, &before_);
    }
    TakenSignals(const TakenSignals&) = delete;
    TakenSignals& operator=(const TakenSignals&) = delete;
    ~TakenSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

    // The number of one, or 0 if none has come until `limit` is over.
    int wait(std::chrono::milliseconds limit) const {
        const timespec time{limit.count() / 1000, limit.count() % 1000 * 1'000'000};
        const int number = sigtimedwait(&taken_, nullptr, &time);
        return number > 0 ? number : 0;
    }
    // One that asks to end; 0 if none has come.
    int ending() const {
        for (int number = wait({}); number != 0; number = wait({}))
            if (number != SIGCHLD) return number;
        return 0;
    }
    const sigset_t& before() const { return before_; }

  private:
    sigset_t taken_;
    sigset_t before_;
};

struct Ended {
    int signal;
};

void write_file(const fs::path& file, const std::string& text) {
    std::ofstream stream(file);
    stream << text << std::flush;
    if (!stream) throw fs::filesystem_error("cannot write", file, {errno, std::generic_category()});
}

void write_files(const LabPlan& plan, const LabFiles& files) {
    fs::create_directory(files.temporary());
    write_file(files.topology(), cluster_text(plan.cluster));
    std::string hosts;
    for (const LabNode& node : plan.nodes)
        hosts += fmt::format("{} {}\n", node.address, node.name_space);
    write_file(files.hosts(), hosts);
    // mpirun splits what it is told to run at spaces; a name of a file of its own has none.
    const std::string program = fs::read_symlink("/proc/self/exe").string();
    if (program.find('\'') != std::string::npos)
        throw std::runtime_error(fmt::format("the name of {} holds a quote", program));
    write_file(files.shell(), fmt::format("#!/bin/sh\nexec '{}' lab-shell '{}' \"$@\"\n", program,
                                          files.folder().string()));
    fs::permissions(files.shell(), fs::perms::owner_all);
}

void set_up(const LabPlan& plan, LabState& state, const TakenSignals& signals) {
    write_files(plan, state.files());
    for (const LabStep& step : plan.steps) {
        if (const int signal = signals.ending()) throw Ended{signal};
        if (!step.makes.empty()) state.about_to_make(step.makes);
        const fs::path output = state.files().output();
        if (!run_child(step.command, "/", output, kStepLimit).exited_with(0))
            throw std::runtime_error(fmt::format("`{}` failed: {}{}", fmt::join(step.command, " "),
                                                 scenarios::read_text_file(output.string()),
                                                 step.needs));
        if (step.makes.empty()) continue;
        const auto inode = inode_of_namespace(step.makes);
        if (!inode) throw std::runtime_error(fmt::format("there is no {}", step.makes));
        state.made(step.makes, *inode);
    }
}

// In the child.
[[noreturn]] void become(const LabPlan& plan, const std::vector<std::string>& command,
                         const LabFiles& files, pid_t parent, const sigset_t& mask) {
    try {
        setpgid(0, 0);  // what a terminal sends, the lab gets alone, and passes on in order
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent) _exit(kLabFault);
        const int nothing = open("/dev/null", O_RDONLY);
        dup2(nothing, STDIN_FILENO);
        setenv("ZEROPROOF_TOPOLOGY", files.topology().c_str(), 1);
        setenv("ZEROPROOF_LAB", plan.name.c_str(), 1);
        const LabNode& first = plan.nodes.front();
        if (plan.has_network()) enter_node(first.name_space, first.host);
        sigprocmask(SIG_SETMASK, &mask, nullptr);
        std::vector<char*> arguments;
        for (const std::string& word : command)
            arguments.push_back(const_cast<char*>(word.c_str()));
        arguments.push_back(nullptr);
        execvp(arguments[0], arguments.data());
        fmt::print(stderr, "zeroproof: cannot start {}: {}\n", command.front(),
                   std::generic_category().message(errno));
    } catch (const std::exception& error) {
        fmt::print(stderr, "zeroproof: {}\n", error.what());
    }
    std::fflush(stderr);
    _exit(kLabFault);
}

// The exit code of `child` if it has ended. What others have left behind is waited for too.
std::optional<int> reap(pid_t child) {
    std::optional<int> code;
    int status = 0;
    for (pid_t ended = waitpid(-1, &status, WNOHANG); ended > 0;
         ended = waitpid(-1, &status, WNOHANG))
        if (ended == child) code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return code;
}

int supervise(const LabPlan& plan, const LabState& state, const std::vector<std::string>& command,
              const TakenSignals& signals) {
    const std::vector<std::string> launch = launch_command(plan, state.files().folder(), command);
    std::fflush(nullptr);
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (child == 0) become(plan, launch, state.files(), parent, signals.before());
    int ending = 0;
    Clock::time_point deadline = Clock::time_point::max();
    for (;;) {
        const int number = signals.wait(std::chrono::milliseconds(200));
        if (const auto code = reap(child)) return ending != 0 ? 128 + ending : *code;
        if (number != 0 && number != SIGCHLD && ending == 0) {
            ending = number;
            kill(child, SIGTERM);
            deadline = Clock::now() + kGrace;
        }
        if (Clock::now() >= deadline) return 128 + ending;  // taking down ends it
    }
}

}  // namespace

int run_lab(const LabPlan& plan, const std::vector<std::string>& command) {
    require_permission();
    require_programs(plan);
    require_free_names(plan);
    const TakenSignals signals;
    // Daemons of mpirun that outlive it become children of this process, which ends them.
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    LabState state = LabState::create(kLabsFolder, plan.name);
    int code = kLabFault;
    try {
        set_up(plan, state, signals);
        code = supervise(plan, state, command, signals);
    } catch (const Ended& ended) {
        code = 128 + ended.signal;
    } catch (const std::exception& error) {
        fmt::print(stderr, "zeroproof: the lab '{}' could not be made: {}\n", plan.name,
                   error.what());
    }
    const std::vector<std::string> left = take_down(state, descendants);
    if (left.empty()) return code;
    fmt::print(
        stderr,
        "zeroproof: of the lab '{}' is left:\n  {}\nRun `zeroproof lab clean` to remove it.\n",
        plan.name, fmt::join(left, "\n  "));
    return kLabFault;
}

}  // namespace zeroproof::harness
