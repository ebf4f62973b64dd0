#include "harness/plugin/plugin_channels.h"

#include <fmt/format.h>

#include <atomic>

#include "harness/plugin/plugin_memory.h"

namespace zeroproof::harness {

namespace {

using collectives::Op;
using collectives::Operation;
using collectives::Reduction;

static_assert(static_cast<int>(Op::broadcast) == ZEROPROOF_BROADCAST &&
              static_cast<int>(Op::reduce) == ZEROPROOF_REDUCE &&
              static_cast<int>(Op::all_reduce) == ZEROPROOF_ALL_REDUCE &&
              static_cast<int>(Op::reduce_scatter) == ZEROPROOF_REDUCE_SCATTER &&
              static_cast<int>(Op::all_gather) == ZEROPROOF_ALL_GATHER &&
              static_cast<int>(Op::all_to_all) == ZEROPROOF_ALL_TO_ALL &&
              static_cast<int>(Op::send) == ZEROPROOF_SEND &&
              static_cast<int>(Op::receive) == ZEROPROOF_RECEIVE);
static_assert(static_cast<int>(Reduction::none) == ZEROPROOF_NO_REDUCTION &&
              static_cast<int>(Reduction::sum) == ZEROPROOF_SUM &&
              static_cast<int>(Reduction::mean) == ZEROPROOF_MEAN &&
              static_cast<int>(Reduction::max) == ZEROPROOF_MAX &&
              static_cast<int>(Reduction::min) == ZEROPROOF_MIN);

// Of communicators and requests of all ranks and cases, so that none is taken for another.
std::atomic<std::uint64_t> last_handle{0x5A50'0000};

template <typename Enum>
Enum checked(std::int32_t value, Enum last, const char* what) {
    if (value < 0 || value > static_cast<std::int32_t>(last))
        throw PluginFault(fmt::format("{} {} does not exist", what, value));
    return static_cast<Enum>(value);
}

Operation operation_of(const zeroproof_operation& asked, int rank, int size) {
    Operation operation;
    operation.op = checked(asked.op, Op::receive, "operation");
    operation.type = checked(asked.type, memory::DType::int64, "type");
    operation.reduction = checked(asked.reduction, Reduction::min, "reduction");
    operation.input = static_cast<const std::byte*>(asked.input);
    operation.output = static_cast<std::byte*>(asked.output);
    const std::size_t count = asked.count;
    const auto n = static_cast<std::size_t>(size);
    if (count > std::numeric_limits<std::size_t>::max() / 8 / n)
        throw PluginFault(fmt::format("a count of {} elements is too large", count));
    std::size_t& in = operation.in_elements = count;
    std::size_t& out = operation.out_elements = count;
    switch (operation.op) {
        case Op::broadcast: operation.peer = asked.peer; break;
        case Op::reduce:
            operation.peer = asked.peer;
            if (rank != asked.peer) out = 0;
            break;
        case Op::all_reduce: break;
        case Op::reduce_scatter: in = n * count; break;
        case Op::all_gather: out = n * count; break;
        case Op::all_to_all: in = out = n * count; break;
        case Op::send:
            operation.peer = asked.peer;
            out = 0;
            break;
        case Op::receive:
            operation.peer = asked.peer;
            in = 0;
            break;
    }
    return operation;
}

}  // namespace

zeroproof_communicator PluginChannels::open(collectives::Communicator& world,
                                            collectives::Traffic traffic, bool hostile,
                                            std::uint64_t seed) {
    auto group = world.split(0, world.rank());
    if (hostile)
        group =
            std::make_unique<collectives::AdversarialCommunicator>(std::move(group), seed, races_);
    return keep(
        std::make_unique<collectives::MeteredCommunicator>(std::move(group), traffic, meter_));
}

zeroproof_communicator PluginChannels::keep(
    std::unique_ptr<collectives::Communicator> communicator) {
    const zeroproof_communicator handle = ++last_handle;
    communicators_.emplace(handle, std::move(communicator));
    return handle;
}

const collectives::Communicator& PluginChannels::at(zeroproof_communicator communicator) const {
    const auto at = communicators_.find(communicator);
    if (at == communicators_.end())
        throw PluginFault(fmt::format("{} is no communicator of this rank, or one that was closed",
                                      communicator));
    return *at->second;
}

zeroproof_request PluginChannels::start(zeroproof_communicator communicator,
                                        const zeroproof_operation& asked) {
    (void)at(communicator);
    collectives::Communicator& group = *communicators_.at(communicator);
    const Operation operation = operation_of(asked, group.rank(), group.size());
    const zeroproof_request handle = ++last_handle;
    requests_.emplace(handle, group.start(operation));
    return handle;
}

void PluginChannels::wait(zeroproof_request request) {
    const auto at = requests_.find(request);
    if (at == requests_.end())
        throw PluginFault(fmt::format(
            "{} is no request in flight of this rank: wait once for each that start() has given",
            request));
    collectives::Request ours = std::move(at->second);
    requests_.erase(at);
    ours.wait();
}

zeroproof_communicator PluginChannels::split(zeroproof_communicator communicator, int color,
                                             int key) {
    (void)at(communicator);
    auto part = communicators_.at(communicator)->split(color, key);
    return part ? keep(std::move(part)) : 0;
}

void PluginChannels::close(zeroproof_communicator communicator) {
    (void)at(communicator);
    communicators_.erase(communicator);
}

void PluginChannels::close_all() {
    requests_.clear();
    communicators_.clear();
}

}  // namespace zeroproof::harness
