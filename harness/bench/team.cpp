#include "harness/bench/team.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace zeroproof::harness {

namespace {

using memory::DType;

constexpr std::size_t kComplaintBytes = 500;

template <typename T>
std::vector<T> gather_all(collectives::Communicator& world, const T& mine, DType type) {
    std::vector<T> all(static_cast<std::size_t>(world.size()));
    world
        .all_gather(reinterpret_cast<const std::byte*>(&mine),
                    reinterpret_cast<std::byte*>(all.data()), 1, type)
        .wait();
    return all;
}

}  // namespace

void Team::barrier() {
    std::int32_t nothing = 0;
    auto* bytes = reinterpret_cast<std::byte*>(&nothing);
    world_.all_reduce(bytes, bytes, 1, DType::int32, collectives::Reduction::sum).wait();
}

std::vector<double> Team::gather(double mine) {
    return gather_all(world_, mine, DType::fp64);
}

std::vector<std::uint64_t> Team::gather(std::uint64_t mine) {
    return gather_all(world_, mine, DType::int64);
}

std::uint64_t Team::sum(std::uint64_t mine) {
    const auto all = gather(mine);
    return std::accumulate(all.begin(), all.end(), std::uint64_t{0});
}

double Team::leaders(double mine) {
    world_.broadcast(reinterpret_cast<std::byte*>(&mine), 1, DType::fp64, 0).wait();
    return mine;
}

void Team::throw_if_any(const std::string& complaint) {
    const auto complains = gather(std::uint64_t{complaint.empty() ? 0u : 1u});
    const auto first = std::ranges::find(complains, 1u);
    if (first == complains.end()) return;
    char text[kComplaintBytes + 1] = {};
    std::memcpy(text, complaint.data(), std::min(complaint.size(), kComplaintBytes));
    world_
        .broadcast(reinterpret_cast<std::byte*>(text), kComplaintBytes, DType::int8,
                   static_cast<int>(first - complains.begin()))
        .wait();
    throw WrongResult(text);
}

int Team::first_to_differ(std::string_view text) {
    std::uint64_t hash = 14695981039346656037u;  // FNV-1a, 64 bits
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    const auto all = gather(hash);
    const auto other = std::ranges::find_if(all, [&](std::uint64_t h) { return h != all[0]; });
    return other == all.end() ? -1 : static_cast<int>(other - all.begin());
}

}  // namespace zeroproof::harness
