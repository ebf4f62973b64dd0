// The files of a lab, in a folder of its own under /run.
#pragma once

#include <filesystem>

namespace zeroproof::harness {

// Each lab has a folder here, of its name.
inline constexpr const char* kLabsFolder = "/run/zeroproof-lab";
// Where `ip netns` keeps namespaces that have names.
inline constexpr const char* kNamespacesFolder = "/run/netns";

class LabFiles {
  public:
    explicit LabFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}

    const std::filesystem::path& folder() const { return folder_; }
    std::filesystem::path owner() const { return folder_ / "owner"; }  // process and start
    std::filesystem::path namespaces() const { return folder_ / "namespaces"; }  // a journal
    std::filesystem::path hosts() const { return folder_ / "hosts"; }  // address and namespace
    std::filesystem::path topology() const { return folder_ / "topology.json"; }
    std::filesystem::path shell() const { return folder_ / "shell"; }  // mpirun's way to a node
    std::filesystem::path temporary() const { return folder_ / "tmp"; }
    std::filesystem::path output() const { return folder_ / "output"; }  // of the last command

  private:
    std::filesystem::path folder_;
};

}  // namespace zeroproof::harness
