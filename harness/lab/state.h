// What a lab has made, written down before it is made: whoever comes later can take it away.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/lab/lab_files.h"

namespace zeroproof::harness {

// A process as no other has been since the machine started.
struct ProcessIdentity {
    pid_t pid = 0;
    std::uint64_t start_ticks = 0;  // since the machine started

    bool operator==(const ProcessIdentity&) const = default;
};

// Empty if there is no such process.
std::optional<ProcessIdentity> identity_of(pid_t pid);

// A namespace that was to be made.
struct NotedNamespace {
    std::string name;
    std::optional<ino_t> inode;  // once it was there
};

class LabState {
  public:
    // A folder for a new lab of this process. Throws LabRefused if `name` is taken, and
    // std::filesystem::filesystem_error.
    static LabState create(const std::filesystem::path& labs, const std::string& name);
    // All that have a folder in `labs`, by name.
    static std::vector<LabState> load_all(const std::filesystem::path& labs);

    const std::string& name() const { return name_; }
    const LabFiles& files() const { return files_; }
    // Empty if it was not written.
    const std::optional<ProcessIdentity>& owner() const { return owner_; }
    bool is_owner_alive() const;
    const std::vector<NotedNamespace>& namespaces() const { return namespaces_; }

    void about_to_make(const std::string& name_space);
    void made(const std::string& name_space, ino_t inode);
    // All is taken down.
    void remove();

  private:
    LabState(std::string name, std::filesystem::path folder)
        : name_(std::move(name)), files_(std::move(folder)) {}
    static LabState load(const std::filesystem::path& folder);

    std::string name_;
    LabFiles files_;
    std::optional<ProcessIdentity> owner_;
    std::vector<NotedNamespace> namespaces_;
};

// Of the namespace that has this name in `folder`; empty if none has.
std::optional<ino_t> inode_of_namespace(const std::string& name,
                                        const std::filesystem::path& folder = kNamespacesFolder);

}  // namespace zeroproof::harness
