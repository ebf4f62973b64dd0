// The functions that an engine calls.
#include <deque>
#include <mutex>

#include "harness/plugin/host.h"

namespace zeroproof::harness {

namespace {

// Where a result goes.
template <typename Value>
Value& place(Value* pointer) {
    if (pointer == nullptr) throw PluginFault("there is no place for the result");
    return *pointer;
}

using Table = const zeroproof_host*;
constexpr bool kFrees = true;  // done even after a failure, so that an engine can clean up

zeroproof_status allocate(Table table, std::int32_t category, std::size_t bytes, void** memory) {
    return PluginHost::guarded(table, "allocate", !kFrees, [&](PluginHost& host) {
        place(memory) = host.memory().allocate(category, bytes);
    });
}

zeroproof_status release(Table table, void* memory) {
    return PluginHost::guarded(table, "release", kFrees,
                               [&](PluginHost& host) { host.memory().release(memory); });
}

zeroproof_status start(Table table, zeroproof_communicator communicator,
                       const zeroproof_operation* operation, zeroproof_request* request) {
    return PluginHost::guarded(table, "start", !kFrees, [&](PluginHost& host) {
        if (operation == nullptr) throw PluginFault("there is no operation");
        zeroproof_request& result = place(request);
        result = host.channels().start(communicator, *operation);
    });
}

zeroproof_status wait(Table table, zeroproof_request request) {
    return PluginHost::guarded(table, "wait", !kFrees,
                               [&](PluginHost& host) { host.channels().wait(request); });
}

zeroproof_status split(Table table, zeroproof_communicator communicator, std::int32_t color,
                       std::int32_t key, zeroproof_communicator* part) {
    return PluginHost::guarded(table, "split", !kFrees, [&](PluginHost& host) {
        zeroproof_communicator& result = place(part);
        result = host.channels().split(communicator, color, key);
    });
}

zeroproof_status shape(Table table, zeroproof_communicator communicator, std::int32_t* rank,
                       std::int32_t* ranks) {
    return PluginHost::guarded(table, "shape", !kFrees, [&](PluginHost& host) {
        const collectives::Communicator& group = host.channels().at(communicator);
        if (rank != nullptr) *rank = group.rank();
        if (ranks != nullptr) *ranks = group.size();
    });
}

zeroproof_status close(Table table, zeroproof_communicator communicator) {
    return PluginHost::guarded(table, "close", kFrees,
                               [&](PluginHost& host) { host.channels().close(communicator); });
}

zeroproof_status initial_weights(Table table, std::size_t parameter, std::size_t begin,
                                 std::size_t elements, float* values) {
    return PluginHost::guarded(table, "initial_weights", !kFrees, [&](PluginHost& host) {
        host.model().initial_weights(parameter, begin, elements, values);
    });
}

zeroproof_status forward(Table table, std::size_t unit, const zeroproof_tensor* weights) {
    return PluginHost::guarded(table, "forward", !kFrees,
                               [&](PluginHost& host) { host.forward(unit, weights); });
}

zeroproof_status begin_backward(Table table) {
    return PluginHost::guarded(table, "begin_backward", !kFrees,
                               [&](PluginHost& host) { host.begin_backward(); });
}

zeroproof_status backward(Table table, std::size_t unit, const zeroproof_tensor* weights,
                          const zeroproof_tensor* gradients, float loss_scale, std::int32_t* used) {
    return PluginHost::guarded(table, "backward", !kFrees, [&](PluginHost& host) {
        host.backward(unit, weights, gradients, loss_scale, used);
    });
}

void explain(Table table, const char* message) {
    (void)PluginHost::guarded(table, "explain", kFrees,
                              [&](PluginHost& host) { host.explain(message); });
}

void log(Table table, const char* message) {
    (void)PluginHost::guarded(table, "log", kFrees, [&](PluginHost& host) { host.log(message); });
}

}  // namespace

zeroproof_host& new_table() {
    static auto& mutex = *new std::mutex;  // never destroyed: threads of an engine may live on
    static auto& tables = *new std::deque<zeroproof_host>;
    const std::lock_guard lock(mutex);
    zeroproof_host& table = tables.emplace_back();
    table.struct_size = sizeof table;
    table.abi_version = ZEROPROOF_ABI_VERSION;
    table.allocate = allocate;
    table.release = release;
    table.start = start;
    table.wait = wait;
    table.split = split;
    table.shape = shape;
    table.close = close;
    table.initial_weights = initial_weights;
    table.forward = forward;
    table.begin_backward = begin_backward;
    table.backward = backward;
    table.explain = explain;
    table.log = log;
    return table;
}

}  // namespace zeroproof::harness
