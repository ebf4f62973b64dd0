#include "harness/lab/take_down.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <system_error>

#include "harness/lab/processes.h"
#include "harness/process/child.h"
#include "scenarios/json_reader.h"

namespace zeroproof::harness {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds kEnding{10};
constexpr std::chrono::seconds kDeleting{30};
// Where Open MPI has the memory that ranks of a node share, in files with the node's name.
constexpr const char* kSharedMemory = "/dev/shm";

bool is_there(const NotedNamespace& noted) {
    const auto inode = inode_of_namespace(noted.name);
    return inode && (!noted.inode || inode == noted.inode);
}

std::set<ino_t> inodes_of(const LabState& state) {
    std::set<ino_t> inodes;
    for (const NotedNamespace& noted : state.namespaces()) {
        if (noted.inode)
            inodes.insert(*noted.inode);
        else if (const auto inode = inode_of_namespace(noted.name))
            inodes.insert(*inode);
    }
    return inodes;
}

std::vector<fs::path> shared_memory_of(const LabState& state) {
    std::vector<fs::path> found;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(kSharedMemory, ignored))
        for (const NotedNamespace& noted : state.namespaces())
            if (entry.path().filename().string().starts_with(
                    fmt::format("vader_segment.{}.", noted.name)))
                found.push_back(entry.path());
    return found;
}

// What `ip netns delete` has to say if it fails, else nothing.
std::string delete_namespace(const std::string& name, const LabState& state) {
    try {
        const fs::path output = state.files().output();
        if (run_child({"ip", "netns", "delete", name}, "/", output, kDeleting).exited_with(0))
            return {};
        return scenarios::read_text_file(output.string());
    } catch (const std::exception& error) {
        return error.what();
    }
}

}  // namespace

std::vector<std::string> remains_of(const LabState& state) {
    std::vector<std::string> remains;
    for (const pid_t pid : processes_in(inodes_of(state)))
        remains.push_back(fmt::format("process {}", pid));
    for (const NotedNamespace& noted : state.namespaces())
        if (is_there(noted)) remains.push_back(fmt::format("network namespace {}", noted.name));
    for (const fs::path& path : shared_memory_of(state)) remains.push_back(path.string());
    remains.push_back(state.files().folder().string());
    return remains;
}

std::vector<std::string> take_down(LabState& state, const std::function<std::set<pid_t>()>& also) {
    std::vector<std::string> left;
    const auto all = [&, inodes = inodes_of(state)] {
        std::set<pid_t> found = processes_in(inodes);
        found.merge(also());
        return found;
    };
    if (!end_all(all, kEnding))
        for (const pid_t pid : all()) left.push_back(fmt::format("process {}", pid));
    for (auto noted = state.namespaces().rbegin(); noted != state.namespaces().rend(); ++noted) {
        if (!is_there(*noted)) continue;
        const std::string why = delete_namespace(noted->name, state);
        if (!why.empty()) left.push_back(fmt::format("network namespace {}: {}", noted->name, why));
    }
    for (const fs::path& path : shared_memory_of(state)) {
        std::error_code error;
        if (!fs::remove(path, error) && error) left.push_back(path.string());
    }
    if (!left.empty()) return left;
    try {
        state.remove();
    } catch (const fs::filesystem_error& error) {
        left.push_back(error.what());
    }
    return left;
}

}  // namespace zeroproof::harness
