#include "harness/lab/node_shell.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "harness/lab/lab_files.h"

namespace zeroproof::harness {

namespace {

void require(bool holds, const std::string& what) {
    if (!holds) throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

void enter_node(const std::string& name_space, const std::string& host) {
    const std::filesystem::path path = std::filesystem::path(kNamespacesFolder) / name_space;
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    require(descriptor >= 0, path.string());
    require(setns(descriptor, CLONE_NEWNET) == 0, "cannot enter " + path.string());
    close(descriptor);
    require(unshare(CLONE_NEWUTS) == 0, "cannot have a host name of its own");
    require(sethostname(host.c_str(), host.size()) == 0, "cannot set the host name");
}

void run_node_shell(const std::filesystem::path& folder, const std::string& address,
                    const std::vector<std::string>& words) {
    std::ifstream hosts(LabFiles(folder).hosts());
    std::string known;
    std::string name_space;
    while (hosts >> known >> name_space)
        if (known == address) {
            enter_node(name_space, name_space);
            sigset_t none;
            sigemptyset(&none);
            sigprocmask(SIG_SETMASK, &none, nullptr);
            const std::string line = fmt::format("{}", fmt::join(words, " "));
            execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
            throw std::system_error(errno, std::generic_category(), "/bin/sh");
        }
    throw std::runtime_error(fmt::format("no node of this lab has the address {}", address));
}

}  // namespace zeroproof::harness
