#include "harness/lab/shaping.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace zeroproof::harness {

namespace {

// Measured with twice as many ranks as processors: streams then reach 97 to 99 % of 0.1 and 1
// Gbit/s. With a fifth of this some is lost, where a processor comes late; twice as much gains 1 %.
constexpr double kBurstSeconds = 0.0005;
constexpr std::uint64_t kLeastBurstBytes = 20000;  // two frames
// As a switch has; one sender fills no more of it than it must, several at once do.
constexpr double kQueueSeconds = 0.004;
constexpr std::uint64_t kLeastQueueBytes = 256 * 1024;

std::uint64_t bytes_in(double seconds, double bytes_per_s, std::uint64_t least) {
    return std::max(static_cast<std::uint64_t>(seconds * bytes_per_s), least);
}

}  // namespace

Shape shape_for(const collectives::Link& link) {
    const double bytes_per_s = link.bandwidth_bytes_per_s.value();
    Shape shape;
    shape.rate_bit_per_s = static_cast<std::uint64_t>(std::llround(8 * bytes_per_s));
    shape.burst_bytes = bytes_in(kBurstSeconds, bytes_per_s, kLeastBurstBytes);
    shape.delay_s = link.latency_s.value_or(0);
    // What is on its way in the delay waits in the same queue.
    shape.queue_bytes = bytes_in(kQueueSeconds + 2 * shape.delay_s, bytes_per_s, kLeastQueueBytes);
    return shape;
}

std::vector<std::vector<std::string>> shaping_commands(const std::string& name_space,
                                                       const std::string& device,
                                                       const Shape& shape) {
    std::vector<std::vector<std::string>> commands;
    commands.push_back({"tc", "-n", name_space, "qdisc", "add", "dev", device, "root", "handle",
                        "1:", "tbf", "rate", fmt::format("{}bit", shape.rate_bit_per_s), "burst",
                        fmt::format("{}b", shape.burst_bytes), "limit",
                        fmt::format("{}b", shape.queue_bytes)});
    if (shape.delay_s > 0)
        commands.push_back(
            {"tc", "-n", name_space, "qdisc", "add", "dev", device, "parent", "1:1", "handle",
             "10:", "netem", "delay", fmt::format("{:.0f}us", shape.delay_s * 1e6), "limit",
             fmt::format("{}", std::max<std::uint64_t>(shape.queue_bytes / 1000, 1000))});
    return commands;
}

}  // namespace zeroproof::harness
