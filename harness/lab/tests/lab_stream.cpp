// Run on each rank of a lab: the last one sends to the first for a while, over plain TCP. Prints
// the Gbit/s that arrive.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint16_t kPort = 5201;
constexpr std::chrono::milliseconds kDuration{1500};

sockaddr_in address_of_the_first_node() {
    const std::filesystem::path topology = std::getenv("ZEROPROOF_TOPOLOGY");
    std::string text;
    std::ifstream(topology.parent_path() / "hosts") >> text;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(kPort);
    inet_pton(AF_INET, text.c_str(), &address.sin_addr);
    return address;
}

int receive(const sockaddr_in& address) {
    const int listening = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listening, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        listen(listening, 1) != 0)
        return 1;
    const int connection = accept(listening, nullptr, nullptr);
    std::vector<char> bytes(1 << 20);
    // What has come by the first look may have waited: time starts after it.
    if (read(connection, bytes.data(), bytes.size()) <= 0) return 1;
    const auto begin = Clock::now();
    double received = 0;
    for (ssize_t n = 0; (n = read(connection, bytes.data(), bytes.size())) > 0;)
        received += static_cast<double>(n);
    const std::chrono::duration<double> time = Clock::now() - begin;
    std::cout << "received " << 8 * received / time.count() / 1e9 << std::endl;
    return 0;
}

int send(const sockaddr_in& address) {
    const auto late = Clock::now() + std::chrono::seconds(20);
    int connection = -1;
    do {
        if (Clock::now() > late) return 1;
        if (connection >= 0) close(connection);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        connection = socket(AF_INET, SOCK_STREAM, 0);
    } while (connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0);
    const std::vector<char> bytes(1 << 16);
    for (const auto end = Clock::now() + kDuration; Clock::now() < end;)
        if (write(connection, bytes.data(), bytes.size()) < 0) return 1;
    return 0;
}

}  // namespace

int main() {
    const int rank = std::atoi(std::getenv("OMPI_COMM_WORLD_RANK"));
    const int ranks = std::atoi(std::getenv("OMPI_COMM_WORLD_SIZE"));
    if (rank == 0) return receive(address_of_the_first_node());
    if (rank == ranks - 1) return send(address_of_the_first_node());
    return 0;
}
