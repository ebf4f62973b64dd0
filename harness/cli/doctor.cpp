#include "harness/cli/doctor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>

#include "collectives/mpi/mpi_world.h"
#include "harness/temporary_folder.h"
#include "harness/version.h"

namespace zeroproof::harness {

namespace {

std::string find_program(const std::string& name) {
    const char* path = std::getenv("PATH");
    std::istringstream folders(path != nullptr ? path : "");
    for (std::string folder; std::getline(folders, folder, ':');) {
        const std::filesystem::path candidate = std::filesystem::path(folder) / name;
        if (access(candidate.c_str(), X_OK) == 0) return candidate.string();
    }
    return {};
}

void line(const std::string& what, bool there, const std::string& detail) {
    fmt::print("  {:<8} {:<22} {}\n", there ? "ok" : "missing", what, detail);
}

bool program(const std::string& name, const std::string& purpose, const std::string& package) {
    const std::string path = find_program(name);
    line(name, !path.empty(),
         path.empty() ? fmt::format("for {}: apt-get install {}", purpose, package)
                      : fmt::format("{}, for {}", path, purpose));
    return !path.empty();
}

bool folder(const std::string& name, const std::string& path, const std::string& remedy) {
    const bool there = std::filesystem::is_directory(path);
    line(name, there, there ? path : fmt::format("{} is gone: {}", path, remedy));
    return there;
}

bool temporary_files() {
    try {
        const TemporaryFolder folder;
        line("temporary files", true, folder.path().parent_path().string());
        return true;
    } catch (const std::filesystem::filesystem_error& error) {
        line("temporary files", false, fmt::format("{}: set TMPDIR", error.what()));
        return false;
    }
}

// Optional: without it, ranks are threads.
void mpi() {
    using collectives::MpiWorld;
    fmt::print("\nThe reference over MPI, which is optional\n");
    line("backend mpi", MpiWorld::is_built_in(),
         MpiWorld::is_built_in()
             ? MpiWorld::library() + "; built in"
             : "not in this build: apt-get install libopenmpi-dev, then configure and build again");
    program("mpirun", "starting ranks", "openmpi-bin");

    fmt::print("\nLabs, which are optional and take root\n");
    program("ip", "namespaces and links", "iproute2");
    program("tc", "their bandwidth", "iproute2");
}

}  // namespace

int doctor() {
    const auto pages = static_cast<unsigned long long>(sysconf(_SC_PHYS_PAGES));
    const auto page = static_cast<unsigned long long>(sysconf(_SC_PAGE_SIZE));
    fmt::print("zeroproof {}, {} processors, {:.1f} GiB of memory\n\n", kVersion,
               std::thread::hardware_concurrency(),
               static_cast<double>(pages * page) / (1024.0 * 1024 * 1024));

    fmt::print("Verification of the reference\n");
    line("backend threads", true, "ranks are threads of one process; built in");
    bool complete = temporary_files();

    mpi();

    fmt::print("\nMutants\n");
    complete &= folder("source", ZEROPROOF_SOURCE_DIR, "clone it again, and build there");
    complete &= folder("build", ZEROPROOF_BINARY_DIR, "cmake --preset release");
    complete &= program("c++", "compiling mutants", "g++");
    complete &= program("cmake", "building", "cmake");
    complete &= program("ninja", "building", "ninja-build");

    fmt::print("\nNot in this build: NCCL, CUDA, and the planner.\n");
    fmt::print("{}\n", complete ? "Everything that this build can use is there."
                                : "Something is missing: 'ci/setup' installs it on Debian.");
    return complete ? 0 : 1;
}

}  // namespace zeroproof::harness
