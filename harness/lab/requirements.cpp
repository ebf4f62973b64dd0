#include "harness/lab/requirements.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "harness/lab/state.h"

namespace zeroproof::harness {

namespace {

constexpr int kSubnetBits = 24;
// Where few have networks of their own.
constexpr std::array<std::array<int, 3>, 6> kCandidates = {
    {{10, 213, 87}, {10, 171, 219}, {172, 29, 187}, {10, 94, 231}, {192, 168, 231}, {172, 22, 93}}};

std::uint32_t number_of(const Subnet& subnet) {
    std::uint32_t number = 0;
    for (const int byte : subnet.bytes) number = number << 8 | static_cast<std::uint32_t>(byte);
    return number << 8;
}

bool do_overlap(const Network& a, const Network& b) {
    const int common = std::min(a.length, b.length);
    return common == 0 || (a.address ^ b.address) >> (32 - common) == 0;
}

bool has_program(const std::string& name) {
    const char* path = std::getenv("PATH");
    std::istringstream folders(path != nullptr ? path : "");
    for (std::string folder; std::getline(folders, folder, ':');)
        if (access((std::filesystem::path(folder) / name).c_str(), X_OK) == 0) return true;
    return false;
}

std::uint64_t effective_capabilities() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("CapEff:")) return std::stoull(line.substr(7), nullptr, 16);
    return 0;
}

}  // namespace

std::vector<Network> routes_in(const std::string& text) {
    std::vector<Network> routes;
    std::istringstream lines(text);
    std::string line;
    std::getline(lines, line);  // the names of the columns
    while (std::getline(lines, line)) {
        std::istringstream fields(line);
        std::string interface;
        std::string destination;
        std::string skipped;
        std::string mask;
        // Interface, destination, gateway, flags, references, use, metric, mask.
        fields >> interface >> destination;
        for (int i = 0; i < 5; ++i) fields >> skipped;
        if (!(fields >> mask)) continue;
        const auto hexadecimal = [](const std::string& digits) {
            return ntohl(static_cast<std::uint32_t>(std::stoul(digits, nullptr, 16)));
        };
        const int length = std::popcount(hexadecimal(mask));
        if (length > 0) routes.push_back({hexadecimal(destination), length});
    }
    return routes;
}

std::vector<Network> networks_of_this_machine() {
    std::ifstream file("/proc/net/route");
    std::ostringstream text;
    text << file.rdbuf();
    std::vector<Network> networks = routes_in(text.str());
    ifaddrs* addresses = nullptr;
    if (getifaddrs(&addresses) != 0) return networks;
    for (const ifaddrs* at = addresses; at != nullptr; at = at->ifa_next) {
        if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
        sockaddr_in address{};
        std::memcpy(&address, at->ifa_addr, sizeof address);
        networks.push_back({ntohl(address.sin_addr.s_addr), 32});
    }
    freeifaddrs(addresses);
    return networks;
}

Subnet choose_subnet(const std::vector<Network>& taken) {
    for (const auto& bytes : kCandidates) {
        const Subnet subnet{bytes};
        const Network network{number_of(subnet), kSubnetBits};
        bool is_free = true;
        for (const Network& other : taken) is_free &= !do_overlap(network, other);
        if (is_free) return subnet;
    }
    throw LabRefused(
        "this machine has routes to, or addresses in, each of the private subnets that a lab would "
        "take (the first is " +
        Subnet{kCandidates.front()}.text() + ")");
}

void require_programs(const LabPlan& plan) {
    struct Program {
        const char* name;
        const char* package;
        bool is_needed;
    };
    for (const auto& [name, package, is_needed] :
         {Program{"ip", "iproute2", plan.has_network()},
          Program{"tc", "iproute2", plan.has_network()}, Program{"mpirun", "openmpi-bin", true}})
        if (is_needed && !has_program(name))
            throw LabRefused(
                fmt::format("a lab needs the program {}: apt-get install {}", name, package));
}

void require_permission() {
    const std::uint64_t needed = std::uint64_t{1} << CAP_SYS_ADMIN | std::uint64_t{1}
                                                                         << CAP_NET_ADMIN;
    if (geteuid() != 0 || (effective_capabilities() & needed) != needed)
        throw LabRefused(
            "a lab makes network namespaces, which takes root with CAP_SYS_ADMIN and "
            "CAP_NET_ADMIN: run it with sudo, or in a container with --cap-add SYS_ADMIN --cap-add "
            "NET_ADMIN");
}

void require_free_names(const LabPlan& plan) {
    for (const std::string& name : plan.namespaces())
        if (std::filesystem::exists(
                std::filesystem::symlink_status(std::filesystem::path(kNamespacesFolder) / name)))
            throw LabRefused(fmt::format(
                "there is a network namespace '{}' already: choose another --name", name));
}

}  // namespace zeroproof::harness
