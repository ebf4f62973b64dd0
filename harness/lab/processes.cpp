#include "harness/lab/processes.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>

namespace zeroproof::harness {

namespace {

template <typename Use>
void for_each_process(Use&& use) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
        const std::string name = entry.path().filename();
        pid_t pid = 0;
        const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
        if (error == std::errc() && end == name.data() + name.size()) use(pid);
    }
}

pid_t parent_of(pid_t pid) {
    std::ifstream file(fmt::format("/proc/{}/stat", pid));
    std::string line;
    std::getline(file, line);
    // "pid (name) state parent ...", where the name may hold anything.
    const std::size_t close = line.rfind(')');
    if (close == std::string::npos || close + 4 >= line.size()) return 0;
    pid_t parent = 0;
    std::from_chars(line.data() + close + 4, line.data() + line.size(), parent);
    return parent;
}

}  // namespace

std::set<pid_t> processes_in(const std::set<ino_t>& namespaces) {
    std::set<pid_t> found;
    for_each_process([&](pid_t pid) {
        struct stat network {};
        if (stat(fmt::format("/proc/{}/ns/net", pid).c_str(), &network) == 0 &&
            namespaces.contains(network.st_ino))
            found.insert(pid);
    });
    return found;
}

std::set<pid_t> descendants() {
    std::multimap<pid_t, pid_t> children;
    for_each_process([&](pid_t pid) { children.emplace(parent_of(pid), pid); });
    std::vector<pid_t> all{getpid()};
    for (std::size_t i = 0; i < all.size(); ++i) {
        const auto [begin, end] = children.equal_range(all[i]);
        for (auto at = begin; at != end; ++at) all.push_back(at->second);
    }
    return {all.begin() + 1, all.end()};
}

bool end_all(const std::function<std::set<pid_t>()>& find, std::chrono::milliseconds limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    for (;;) {
        std::set<pid_t> left = find();
        left.erase(getpid());
        if (left.empty()) return true;
        if (std::chrono::steady_clock::now() >= deadline) return false;
        for (const pid_t pid : left) kill(pid, SIGKILL);
        while (waitpid(-1, nullptr, WNOHANG) > 0) {
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

}  // namespace zeroproof::harness
