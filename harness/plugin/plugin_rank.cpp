#include "harness/plugin/plugin_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace zeroproof::harness {

namespace {

using memory::Phase;
using suites::ActionKind;
using suites::Observation;

// Words behind an array that an engine fills: whoever writes them has not kept to its length.
constexpr std::size_t kGuard = 1024;

}  // namespace

PluginRank::PluginRank(const zeroproof_engine& engine, const PluginDescription& description,
                       const suites::Case& c, const ProgramPart& part, int rank)
    : engine_(engine),
      description_(description),
      case_(c),
      part_(part),
      rank_(rank),
      view_(c, part.stage),
      host_(c, part, rank) {
    for (std::size_t a = 0; a < part.begin; ++a)
        micro_step_ += c.program[a].kind == ActionKind::micro_step;
}

void PluginRank::run(collectives::Communicator& world) {
    host_.open(world);
    try {
        if (create(world)) run_program();
        destroy();
    } catch (...) {
        host_.refuse_from_now_on();
        try {
            destroy();
        } catch (const std::exception&) {
            // The first failure counts.
        }
        host_.close();
        throw;
    }
    host_.close();
}

bool PluginRank::create(collectives::Communicator& world) {
    created_ = host_.call("create", [&] {
        return engine_.create(host_.table(), rank_, part_.ranks, view_.get(), &state_);
    });
    if (created_ != ZEROPROOF_OK) {
        reason_ = host_.reason(created_);
        state_ = nullptr;
    } else if (state_ == nullptr) {
        throw PluginFault("the engine's create has returned ZEROPROOF_OK and no state");
    }
    // So that a rank which refuses leaves none waiting in the middle of a program.
    std::int32_t refused = created_ == ZEROPROOF_OK ? 0 : 1;
    auto* data = reinterpret_cast<std::byte*>(&refused);
    world.all_reduce(data, data, 1, memory::DType::int32, collectives::Reduction::max).wait();
    return refused == 0;
}

void PluginRank::destroy() {
    if (state_ == nullptr) return;
    zeroproof_state* const state = std::exchange(state_, nullptr);
    host_.must("destroy", [&] {
        engine_.destroy(state);
        return ZEROPROOF_OK;
    });
}

void PluginRank::run_program() {
    host_.begin(static_cast<int>(part_.begin) - 1, micro_step_);
    if (part_.load_from.empty()) take_snapshot(ActionKind::step, false);
    for (std::size_t a = part_.begin; a < part_.end; ++a) {
        host_.begin(static_cast<int>(a), micro_step_);
        act(case_.program[a]);
    }
    if (part_.save_to.empty()) return;
    host_.enter(Phase::save);
    host_.must("save", [&] { return engine_.save(state_, part_.save_to.c_str()); });
}

void PluginRank::act(const suites::Action& action) {
    const auto group = static_cast<std::size_t>(action.group);
    const auto call = [&](Phase phase, const char* function, auto&& body) {
        host_.enter(phase);
        host_.must(function, body);
    };
    switch (action.kind) {
        case ActionKind::micro_step:
            ++in_window_;
            call(Phase::forward, "micro_step", [&] {
                return engine_.micro_step(state_, in_window_ == case_.micro_steps ? 1 : 0);
            });
            ++micro_step_;
            return;
        case ActionKind::step: {
            in_window_ = 0;
            zeroproof_step_report report{sizeof report, 0, 0, 1};
            call(Phase::step, "step", [&] { return engine_.step(state_, &report); });
            const bool skipped = report.skipped != 0;
            suites::Snapshot& snapshot = take_snapshot(action.kind, !skipped);
            snapshot.skipped = skipped;
            snapshot.norm = report.norm;
            snapshot.clip_coefficient = report.clip_coefficient;
            return;
        }
        case ActionKind::zero_grad:
            in_window_ = 0;
            call(Phase::zero_grad, "zero_grad",
                 [&] { return engine_.zero_grad(state_, action.by_model ? 1 : 0); });
            break;
        case ActionKind::evaluate:
            call(Phase::evaluate, "evaluate", [&] { return engine_.evaluate(state_); });
            break;
        case ActionKind::reload:
            call(Phase::load, "load",
                 [&] { return engine_.load(state_, part_.load_from.c_str()); });
            break;
        case ActionKind::read: break;
        case ActionKind::save:
            call(Phase::save, "save", [&] { return engine_.save(state_, part_.between.c_str()); });
            break;
        case ActionKind::load:
            call(Phase::load, "load", [&] { return engine_.load(state_, part_.between.c_str()); });
            break;
        case ActionKind::rate:
            call(Phase::read, "set_learning_rate",
                 [&] { return engine_.set_learning_rate(state_, group, action.value); });
            break;
        case ActionKind::clip:
            call(Phase::read, "clip", [&] { return engine_.clip(state_, action.value); });
            break;
        case ActionKind::scale_gradient:
            call(Phase::read, "scale_gradient",
                 [&] { return engine_.scale_gradient(state_, action.parameter, action.value); });
            break;
        case ActionKind::scale_weight:
            call(Phase::read, "scale_weight",
                 [&] { return engine_.scale_weight(state_, action.parameter, action.value); });
            break;
        case ActionKind::freeze:
        case ActionKind::unfreeze:
            call(Phase::read, "set_trainable", [&] {
                return engine_.set_trainable(state_, action.parameter,
                                             action.kind == ActionKind::unfreeze ? 1 : 0);
            });
            break;
        case ActionKind::add_group:
            call(Phase::read, "add_group", [&] { return engine_.add_group(state_, group); });
            break;
    }
    take_snapshot(action.kind, false);
}

suites::Snapshot& PluginRank::take_snapshot(ActionKind kind, bool with_gradients) {
    suites::Snapshot snapshot;
    snapshot.action = host_.action();
    snapshot.kind = kind;
    snapshot.live_bytes = host_.ledger().live_bytes_by_category();
    host_.enter(Phase::read);
    if (engine_.slices != nullptr) snapshot.owned = read_slices(with_gradients);
    for (std::size_t p = 0; observes(Observation::weights) && p < case_.parameters.size(); ++p)
        snapshot.weights.push_back(
            read("read_weights", case_.parameters[p].elements(),
                 [&](float* values) { return engine_.read_weights(state_, p, values); }));
    if (engine_.progress != nullptr) {
        zeroproof_progress progress{sizeof progress, 0, 0, 1};
        host_.must("progress", [&] { return engine_.progress(state_, &progress); });
        snapshot.steps_taken = progress.steps_taken;
        snapshot.steps_skipped = progress.steps_skipped;
        snapshot.loss_scale = progress.loss_scale;
    }
    return host_.evidence().snapshots.emplace_back(std::move(snapshot));
}

std::vector<suites::OwnedSlice> PluginRank::read_slices(bool with_gradients) {
    std::size_t all = 0;
    for (const suites::ParameterCase& parameter : case_.parameters) all += parameter.elements();
    // What is beyond its parameter is evidence, which a clause judges; without bounds it is not.
    const std::size_t most = 2 * (all + case_.parameters.size() + case_.bucket_elements +
                                  static_cast<std::size_t>(part_.ranks));
    std::size_t count = 0;
    host_.must("slices", [&] { return engine_.slices(state_, nullptr, 0, &count); });
    if (count > most)
        throw PluginFault(
            fmt::format("the engine's slices counts {} slices of {} elements", count, all));
    std::vector<zeroproof_slice> slices(count);
    std::size_t again = 0;
    host_.must("slices", [&] { return engine_.slices(state_, slices.data(), count, &again); });
    if (again != count)
        throw PluginFault(fmt::format("the engine's slices counts {}, and then {}", count, again));

    std::vector<suites::OwnedSlice> owned;
    std::size_t elements = 0;
    for (const zeroproof_slice& slice : slices) {
        if (slice.parameter >= case_.parameters.size() || slice.begin > most ||
            slice.elements > most || (elements += slice.elements) > most)
            throw PluginFault(fmt::format(
                "slice {} of the engine, {} elements from {} of parameter {}, is none: the case "
                "has {} parameters with {} elements",
                owned.size(), slice.elements, slice.begin, slice.parameter, case_.parameters.size(),
                all));
        const auto values = [&](Observation what, std::int32_t number) -> std::vector<float> {
            if (!observes(what)) return {};
            return read("read_slice", slice.elements, [&](float* target) {
                return engine_.read_slice(state_, &slice, number, target);
            });
        };
        suites::OwnedSlice& taken = owned.emplace_back();
        taken.parameter = slice.parameter;
        taken.begin = slice.begin;
        taken.elements = slice.elements;
        taken.master = values(Observation::master, ZEROPROOF_READ_MASTER);
        taken.momentum = values(Observation::momentum, ZEROPROOF_READ_MOMENTUM);
        taken.variance = values(Observation::variance, ZEROPROOF_READ_VARIANCE);
        if (with_gradients) taken.gradient = values(Observation::gradient, ZEROPROOF_READ_GRADIENT);
    }
    return owned;
}

std::vector<float> PluginRank::read(const char* function, std::size_t elements,
                                    const std::function<zeroproof_status(float*)>& body) {
    const auto poison = std::bit_cast<float>(std::uint32_t{0xFFFFFFFF});
    std::vector<float> values(elements + kGuard, poison);
    if (elements > 0) host_.must(function, [&] { return body(values.data()); });
    for (std::size_t i = elements; i < values.size(); ++i)
        if (std::bit_cast<std::uint32_t>(values[i]) != 0xFFFFFFFF)
            throw PluginFault(
                fmt::format("the engine's {} has written beyond the {} elements that "
                            "it was asked for",
                            function, elements));
    values.resize(elements);
    return values;
}

}  // namespace zeroproof::harness
