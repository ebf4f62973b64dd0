#include "harness/plugin/host.h"

#include <fmt/format.h>

#include <cstdio>
#include <mutex>
#include <utility>

#include "collectives/thread_world.h"
#include "harness/plugin/crash_note.h"
#include "harness/writers/text.h"

namespace zeroproof::harness {

namespace {

using collectives::Traffic;
using memory::Phase;

constexpr std::size_t kMostText = 2000;  // of an engine's messages
// A case has at most 2^24 elements: who asks for more than that in live bytes has miscounted.
constexpr std::size_t kMostBytes = std::size_t{8} << 30;

// Whose engine is in a call in this thread.
thread_local PluginHost* current = nullptr;

std::mutex stray_mutex;
std::string stray_call;

std::string taken(const char* message) {
    return message == nullptr ? "" : printable(std::string_view(message).substr(0, kMostText));
}

}  // namespace

std::string take_stray_calls() {
    const std::lock_guard lock(stray_mutex);
    return std::exchange(stray_call, {});
}

PluginHost::PluginHost(const suites::Case& c, const ProgramPart& part, int rank)
    : case_(c),
      rank_(rank),
      // Quarantined even in plain surroundings: what an engine has released too early may still be
      // in use by the ranks that read it.
      space_(fmt::format("the device of rank {}", rank), kMostBytes, memory::Returned::quarantined),
      meter_(space_.ledger()),
      memory_(space_),
      channels_(meter_, evidence_.races),
      model_(c, part.ranks, rank, meter_, evidence_),
      table_(new_table()) {}

void PluginHost::open(collectives::Communicator& world) {
    evidence_.races_watched = case_.surroundings == suites::Surroundings::hostile;
    const std::uint64_t seed = case_.seed + static_cast<std::uint64_t>(rank_);
    const auto channel = [&](Traffic traffic) {
        return channels_.open(world, traffic, evidence_.races_watched, seed);
    };
    table_.gradients = channel(Traffic::gradient);
    table_.parameters = channel(Traffic::parameter);
    table_.control = channel(Traffic::control);
}

zeroproof_status PluginHost::call(const char* function,
                                  const std::function<zeroproof_status()>& body) {
    explanation_.clear();
    current = this;
    zeroproof_status status = ZEROPROOF_ERROR;
    std::string thrown;
    try {
        const InFunction here(function, rank_);
        status = body();
    } catch (const std::exception& error) {
        thrown = error.what();
    } catch (...) {
        thrown = "something that is no std::exception";
    }
    current = nullptr;
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    if (!thrown.empty())
        throw PluginFault(
            fmt::format("the engine's {} has thrown: {}; a function of the interface "
                        "returns a status instead",
                        function, printable(thrown)));
    return status;
}

void PluginHost::must(const char* function, const std::function<zeroproof_status()>& body) {
    const zeroproof_status status = call(function, body);
    if (status != ZEROPROOF_OK)
        throw PluginFault(fmt::format("the engine's {} failed: {}", function, reason(status)));
}

std::string PluginHost::reason(zeroproof_status status) const {
    if (!explanation_.empty()) return explanation_;
    return fmt::format("it returned {} and did not explain() why", status);
}

void PluginHost::begin(int action, std::size_t micro_step) {
    evidence_.collective_actions.resize(meter_.records().size(), action_);
    action_ = action;
    micro_step_ = micro_step;
}

suites::RankEvidence PluginHost::take_evidence() {
    evidence_.collectives = meter_.records();
    evidence_.collective_actions.resize(evidence_.collectives.size(), action_);
    for (std::size_t phase = 0; phase < memory::kPhases; ++phase)
        evidence_.peak_bytes[phase] = ledger().peak_bytes(static_cast<Phase>(phase));
    return std::move(evidence_);
}

void PluginHost::forward(std::size_t unit, const zeroproof_tensor* weights) {
    if (ledger().phase() != Phase::forward && ledger().phase() != Phase::evaluate)
        throw PluginFault(fmt::format("it is for a forward pass, and this is phase {}",
                                      memory::name_of(ledger().phase())));
    model_.forward(action_, unit, weights);
}

void PluginHost::begin_backward() {
    if (ledger().phase() != Phase::forward)
        throw PluginFault(
            fmt::format("it ends the forward pass of micro_step, and this is phase {}",
                        memory::name_of(ledger().phase())));
    enter(Phase::backward);
}

void PluginHost::backward(std::size_t unit, const zeroproof_tensor* weights,
                          const zeroproof_tensor* gradients, float loss_scale, std::int32_t* used) {
    if (ledger().phase() != Phase::backward)
        throw PluginFault(fmt::format("it is for what follows begin_backward, and this is phase {}",
                                      memory::name_of(ledger().phase())));
    model_.backward(action_, micro_step_, unit, weights, gradients, loss_scale, used);
}

void PluginHost::explain(const char* message) {
    explanation_ = taken(message);
}

void PluginHost::log(const char* message) const {
    fmt::print(stderr, "rank {}, {}, action {}: {}\n", rank_, case_.id, action_, taken(message));
    std::fflush(stderr);
}

PluginHost* PluginHost::in_call(const zeroproof_host* table, const char* callback) noexcept {
    if (current != nullptr && table == current->table()) return current;
    try {
        if (current == nullptr) {
            const std::lock_guard lock(stray_mutex);
            stray_call = fmt::format(
                "the engine has called {} outside of its own functions: a rank calls back in the "
                "thread in which it is called, until destroy returns",
                callback);
            return nullptr;
        }
        throw PluginFault("the host that was given is not that of this rank");
    } catch (...) {
        if (current != nullptr) current->fail(callback);
    }
    return nullptr;
}

void PluginHost::fail(const char* callback) noexcept {
    if (failure_) return;
    failure_ = std::current_exception();
    try {
        std::rethrow_exception(failure_);
    } catch (const collectives::WorldFailed&) {
        // Not this rank's doing.
    } catch (const std::exception& error) {
        failure_ = std::make_exception_ptr(
            PluginFault(fmt::format("the engine's call of {}: {}", callback, error.what())));
    } catch (...) {
        // Told as it is.
    }
    refuses_ = true;
}

}  // namespace zeroproof::harness
