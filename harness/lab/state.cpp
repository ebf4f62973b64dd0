#include "harness/lab/state.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <system_error>

#include "harness/lab/plan.h"

namespace zeroproof::harness {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kUnfinished = ".new-";  // before the folder has its name

void append_line(const fs::path& file, const std::string& line) {
    std::ofstream stream(file, std::ios::app);
    stream << line << '\n' << std::flush;
    if (!stream) throw fs::filesystem_error("cannot write", file, {errno, std::generic_category()});
}

}  // namespace

std::optional<ProcessIdentity> identity_of(pid_t pid) {
    std::ifstream file(fmt::format("/proc/{}/stat", pid));
    std::string line;
    std::getline(file, line);
    // "pid (name) state ...", where the name may hold anything.
    const std::size_t close = line.rfind(')');
    if (close == std::string::npos) return {};
    std::istringstream fields(line.substr(close + 1));
    std::string state;
    fields >> state;
    if (state == "Z") return {};  // it has ended; its parent has not looked yet
    constexpr int kBetween = 18;  // fields 4 to 21; the 22nd is the start
    std::string skipped;
    for (int i = 0; i < kBetween; ++i) fields >> skipped;
    ProcessIdentity identity{pid, 0};
    if (!(fields >> identity.start_ticks)) return {};
    return identity;
}

std::optional<ino_t> inode_of_namespace(const std::string& name, const fs::path& folder) {
    struct stat found {};
    if (stat((folder / name).c_str(), &found) != 0) return {};
    return found.st_ino;
}

LabState LabState::create(const fs::path& labs, const std::string& name) {
    fs::create_directories(labs);
    const auto self = identity_of(getpid());
    // With its owner in it from the first moment that it has its name.
    LabState unfinished(name, labs / fmt::format("{}{}-{}", kUnfinished, name, getpid()));
    fs::create_directory(unfinished.files_.folder());
    append_line(unfinished.files_.owner(), fmt::format("{} {}", self->pid, self->start_ticks));
    LabState state(name, labs / name);
    std::error_code error;
    fs::rename(unfinished.files_.folder(), state.files_.folder(), error);
    if (error) {
        fs::remove_all(unfinished.files_.folder());
        if (!fs::exists(state.files_.folder()))
            throw fs::filesystem_error("cannot make", state.files_.folder(), error);
        throw LabRefused(
            fmt::format("there is a lab '{}' already: choose another --name, or see `zeroproof lab "
                        "list`",
                        name));
    }
    state.owner_ = self;
    return state;
}

LabState LabState::load(const fs::path& folder) {
    LabState state(folder.filename().string(), folder);
    ProcessIdentity owner;
    if (std::ifstream(state.files_.owner()) >> owner.pid >> owner.start_ticks) state.owner_ = owner;
    std::ifstream journal(state.files_.namespaces());
    std::string word;
    std::string name;
    while (journal >> word >> name) {
        if (word == "making") {
            state.namespaces_.push_back({name, {}});
        } else if (ino_t inode = 0; word == "made" && journal >> inode) {
            for (NotedNamespace& noted : state.namespaces_)
                if (noted.name == name) noted.inode = inode;
        }
    }
    return state;
}

std::vector<LabState> LabState::load_all(const fs::path& labs) {
    std::vector<LabState> all;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(labs, none))
        if (entry.symlink_status().type() == fs::file_type::directory)
            all.push_back(load(entry.path()));
    std::ranges::sort(all, {}, &LabState::name);
    return all;
}

bool LabState::is_owner_alive() const {
    return owner_ && identity_of(owner_->pid) == owner_;
}

void LabState::about_to_make(const std::string& name_space) {
    append_line(files_.namespaces(), "making " + name_space);
    namespaces_.push_back({name_space, {}});
}

void LabState::made(const std::string& name_space, ino_t inode) {
    append_line(files_.namespaces(), fmt::format("made {} {}", name_space, inode));
    for (NotedNamespace& noted : namespaces_)
        if (noted.name == name_space) noted.inode = inode;
}

void LabState::remove() {
    fs::remove_all(files_.folder());
}

}  // namespace zeroproof::harness
