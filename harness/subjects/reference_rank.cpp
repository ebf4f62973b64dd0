#include "harness/subjects/reference_rank.h"

#include <fmt/format.h>

#include <algorithm>

#include "reference/kernels.h"

namespace zeroproof::harness {

namespace {

using memory::Phase;
using suites::ActionKind;
using suites::Case;

std::vector<reference::Parameter> parameters_of(const Case& c) {
    std::vector<reference::Parameter> parameters;
    for (const suites::ParameterCase& p : c.parameters)
        parameters.push_back({p.name, p.elements(), p.group, p.trainable});
    return parameters;
}

std::vector<reference::Unit> units_of(const Case& c) {
    std::vector<reference::Unit> units;
    for (const suites::UnitCase& unit : c.units) units.push_back({unit.name, unit.parameters});
    return units;
}

reference::Precision precision_of(const Case& c) {
    switch (c.precision) {
        case suites::Precision::bf16: return reference::Precision::bf16;
        case suites::Precision::fp16: return reference::Precision::fp16;
        case suites::Precision::fp32: break;
    }
    return reference::Precision::fp32;
}

reference::Options options_of(const Case& c, int stage) {
    reference::Options options;
    options.stage = stage;
    options.precision = precision_of(c);
    options.micro_steps = c.micro_steps;
    for (const suites::GroupCase& g : c.groups)
        options.groups.push_back(
            {.learning_rate = static_cast<float>(g.learning_rate),
             .beta1 = static_cast<float>(g.beta1),
             .beta2 = static_cast<float>(g.beta2),
             .epsilon = static_cast<float>(g.epsilon),
             .weight_decay = static_cast<float>(g.weight_decay),
             .decay = g.l2 ? reference::Decay::l2 : reference::Decay::decoupled});
    options.bucket_elements = c.bucket_elements;
    options.overlap = c.overlap;
    options.prefetch = c.prefetch;
    options.clip_norm = c.clip_norm;
    options.loss_scale = {.initial = static_cast<float>(c.loss_scale.initial),
                          .factor = static_cast<float>(c.loss_scale.factor),
                          .growth_interval = c.loss_scale.growth_interval,
                          .hysteresis = c.loss_scale.hysteresis,
                          .minimum = static_cast<float>(c.loss_scale.minimum)};
    return options;
}

std::vector<float> copy_of(std::span<const float> values) {
    return {values.begin(), values.end()};
}

}  // namespace

template <typename BaseModel>
ReferenceRank::Observed<BaseModel>::Observed(const Case& c, ReferenceRank& owner)
    : BaseModel(parameters_of(c), units_of(c), owner.terms_), owner_(owner) {}

template <typename BaseModel>
void ReferenceRank::Observed<BaseModel>::forward(std::size_t unit,
                                                 std::span<const reference::ConstTensor> weights,
                                                 reference::Pass pass) {
    owner_.note_in_flight(false, unit);
    BaseModel::forward(unit, weights, pass);
}

template <typename BaseModel>
void ReferenceRank::Observed<BaseModel>::backward(std::size_t unit,
                                                  std::span<const reference::ConstTensor> weights,
                                                  std::span<const reference::Tensor> gradients,
                                                  float loss_scale) {
    owner_.note_in_flight(true, unit);
    BaseModel::backward(unit, weights, gradients, loss_scale);
}

ReferenceRank::ReferenceRank(const Case& c, const ProgramPart& part, int rank, int peer)
    : case_(c),
      part_(part),
      rank_(rank),
      gradients_(c, part.ranks),
      terms_(*this),
      space_(c.transformer && c.transformer->tensor_parallel > 1
                 ? fmt::format("the device of rank {}, tensor-parallel rank {}", rank, peer)
                 : fmt::format("the device of rank {}", rank),
             memory::Space::kUnlimited,
             c.surroundings == suites::Surroundings::hostile ? memory::Returned::quarantined
                                                             : memory::Returned::reused),
      host_(fmt::format("the host memory of rank {}", rank)),
      allocations_(space_.ledger()),
      meter_(space_.ledger()) {
    for (std::size_t a = 0; a < part.begin; ++a)
        micro_step_ += c.program[a].kind == ActionKind::micro_step;
}

void ReferenceRank::make_model(collectives::Communicator* activations,
                               collectives::Communicator* checkpoints) {
    if (case_.transformer) {
        const suites::TransformerCase& t = *case_.transformer;
        space_.observe(&allocations_);
        const reference::TransformerOptions options{
            .samples = t.samples,
            .seed = case_.seed,
            .blocks_per_checkpoint = t.blocks_per_checkpoint,
            .checkpoints = {.partition_over = t.partition_checkpoints ? checkpoints : nullptr,
                            .host = t.offload_checkpoints ? &host_ : nullptr,
                            .contiguous = t.contiguous_checkpoints},
            .tensor_parallel = t.tensor_parallel > 1 ? activations : nullptr};
        auto transformer = std::make_unique<ObservedTransformer>(
            case_, options, space_,
            [this](bool backward, std::size_t unit) { note_in_flight(backward, unit); });
        transformer_ = transformer.get();
        model_ = std::move(transformer);
    } else if (case_.model == suites::Model::echo) {
        auto echo = std::make_unique<Observed<reference::EchoModel>>(case_, *this);
        echo_ = echo.get();
        model_ = std::move(echo);
    } else {
        model_ = std::make_unique<Observed<reference::DotModel>>(case_, *this);
    }
}

void ReferenceRank::Terms::initial_weights(std::size_t parameter, std::size_t begin,
                                           std::span<float> values) const {
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(
            suites::Gradients::initial_weight(owner_.case_, parameter, begin + i));
}

bool ReferenceRank::Terms::terms(std::size_t unit, std::size_t parameter,
                                 std::span<float> g) const {
    const Case& c = owner_.case_;
    if (!owner_.gradients_.is_used(parameter, owner_.rank_, owner_.micro_step_)) return false;
    std::size_t use = 0;
    for (std::size_t u = 0; u < unit; ++u)
        use += static_cast<std::size_t>(std::ranges::count(c.units[u].parameters, parameter));
    std::vector<float> values(g.size());
    owner_.gradients_.fill({owner_.rank_, owner_.micro_step_, use}, parameter, values);
    std::ranges::copy(values, g.begin());
    return true;
}

std::unique_ptr<collectives::Communicator> ReferenceRank::channel(collectives::Communicator& group,
                                                                  collectives::Traffic traffic) {
    auto channel = group.split(0, group.rank());
    evidence_.races_watched = case_.surroundings == suites::Surroundings::hostile;
    if (evidence_.races_watched)
        channel = std::make_unique<collectives::AdversarialCommunicator>(
            std::move(channel), case_.seed + static_cast<std::uint64_t>(rank_), evidence_.races);
    return std::make_unique<collectives::MeteredCommunicator>(std::move(channel), traffic, meter_);
}

void ReferenceRank::run(collectives::Communicator& world) {
    using collectives::Traffic;
    const int peers = case_.transformer ? case_.transformer->tensor_parallel : 1;
    const auto same_place = world.split(world.rank() % peers, world.rank());
    const auto group = world.split(world.rank() / peers, world.rank());
    const auto gradients = channel(*same_place, Traffic::gradient);
    const auto parameters = channel(*same_place, Traffic::parameter);
    const auto control = channel(*same_place, Traffic::control);
    const auto activations = channel(*group, Traffic::activation);
    const auto checkpoints = channel(*group, Traffic::checkpoint);
    const auto norm = channel(*group, Traffic::control);

    make_model(activations.get(), checkpoints.get());
    reference::Trainer trainer(
        *model_, options_of(case_, part_.stage),
        {*gradients, *parameters, *control, peers > 1 ? norm.get() : nullptr}, space_);
    action_ = static_cast<int>(part_.begin) - 1;
    if (part_.load_from.empty()) take_snapshot(ActionKind::step, trainer.stage());
    for (std::size_t a = part_.begin; a < part_.end; ++a) {
        action_ = static_cast<int>(a);
        act(case_.program[a], trainer);
        evidence_.collective_actions.resize(meter_.records().size(), action_);
    }
    if (!part_.save_to.empty()) {
        enter(Phase::save);
        trainer.save(part_.save_to);
        evidence_.collective_actions.resize(meter_.records().size(), action_);
    }
}

void ReferenceRank::note_in_flight(bool backward, std::size_t unit) {
    evidence_.in_flight.push_back({action_, backward, unit,
                                   meter_.in_flight(collectives::Traffic::gradient),
                                   meter_.in_flight(collectives::Traffic::parameter),
                                   transformer_ != nullptr && transformer_->moves_checkpoint()});
}

void ReferenceRank::act(const suites::Action& action, reference::Trainer& trainer) {
    reference::Stage& stage = trainer.stage();
    const auto factor = static_cast<float>(action.value);
    switch (action.kind) {
        case ActionKind::micro_step: micro_step(trainer); return;
        case ActionKind::step: {
            const float divisor = stage.gradient_divisor();  // the step may change the loss scale
            enter(Phase::step);
            const reference::StepOutcome outcome = trainer.step();
            suites::Snapshot& snapshot = take_snapshot(action.kind, stage);
            snapshot.skipped = outcome.skipped;
            snapshot.norm = outcome.norm;
            snapshot.clip_coefficient = double{outcome.clip_coefficient};
            note_gradients(snapshot, stage, divisor);
            return;
        }
        case ActionKind::zero_grad:
            enter(Phase::zero_grad);
            trainer.zero_grad();
            break;
        case ActionKind::evaluate:
            enter(Phase::evaluate);
            if (transformer_ != nullptr)
                transformer_->begin_micro_step(micro_step_, rank_, part_.ranks);
            trainer.evaluate();
            take_echoes(false);
            break;
        case ActionKind::reload:
            enter(Phase::load);
            trainer.load(part_.load_from);
            break;
        case ActionKind::read: break;
        case ActionKind::save:
            enter(Phase::save);
            trainer.save(part_.between);
            break;
        case ActionKind::load:
            enter(Phase::load);
            trainer.load(part_.between);
            break;
        case ActionKind::rate:
            trainer.set_learning_rate(static_cast<std::size_t>(action.group), factor);
            break;
        case ActionKind::clip:
            enter(Phase::read);
            trainer.clip(action.value);
            break;
        case ActionKind::scale_gradient:
            enter(Phase::read);
            trainer.scale_gradient(action.parameter, factor);
            break;
        case ActionKind::scale_weight:
            enter(Phase::read);
            trainer.scale_weight(action.parameter, factor);
            break;
        case ActionKind::freeze:
        case ActionKind::unfreeze:
        case ActionKind::add_group:
            throw std::logic_error("outside of what the reference declares");
    }
    take_snapshot(action.kind, stage);
}

void ReferenceRank::micro_step(reference::Trainer& trainer) {
    enter(Phase::forward);
    if (transformer_ != nullptr) transformer_->begin_micro_step(micro_step_, rank_, part_.ranks);
    trainer.forward();
    if (transformer_ != nullptr) transformer_->note_after_forward(space_.ledger(), host_.ledger());
    take_echoes(false);
    enter(Phase::backward);
    trainer.backward();
    take_echoes(true);
    ++micro_step_;
    if (transformer_ == nullptr) return;
    transformer_->note_after_backward(space_.ledger());
    evidence_.micro_steps.push_back(transformer_->take(action_));
}

void ReferenceRank::take_echoes(bool backward) {
    if (echo_ == nullptr) return;
    for (reference::EchoModel::Output& output : echo_->take_outputs())
        evidence_.echoes.push_back(
            {action_, backward, output.unit, output.parameter, std::move(output.weights)});
}

suites::Snapshot& ReferenceRank::take_snapshot(ActionKind kind, reference::Stage& stage) {
    suites::Snapshot snapshot;
    snapshot.action = action_;
    snapshot.kind = kind;
    snapshot.live_bytes = space_.ledger().live_bytes_by_category();
    enter(Phase::read);
    for (const reference::Slice& slice : stage.owned())
        snapshot.owned.push_back({slice.parameter,
                                  slice.begin,
                                  slice.elements,
                                  {},
                                  copy_of(stage.momentum(slice)),
                                  copy_of(stage.variance(slice)),
                                  copy_of(stage.master(slice))});
    for (std::size_t p = 0; p < case_.parameters.size(); ++p) {
        std::vector<float>& weights = snapshot.weights.emplace_back(case_.parameters[p].elements());
        stage.read_weights(p, weights);
    }
    const reference::Progress progress = stage.progress();
    snapshot.steps_taken = progress.steps_taken;
    snapshot.steps_skipped = progress.steps_skipped;
    snapshot.loss_scale = double{progress.loss_scale.value};
    return evidence_.snapshots.emplace_back(std::move(snapshot));
}

void ReferenceRank::note_gradients(suites::Snapshot& snapshot, reference::Stage& stage,
                                   float divisor) {
    for (std::size_t s = 0; s < stage.owned().size(); ++s) {
        const reference::Slice& slice = stage.owned()[s];
        std::vector<float>& gradient = snapshot.owned[s].gradient;
        gradient.resize(slice.elements);
        reference::widen_into(gradient, stage.gradient(slice));
        for (float& g : gradient) g /= divisor;
    }
}

suites::RankEvidence ReferenceRank::take_evidence() {
    evidence_.collectives = meter_.records();
    evidence_.collective_actions.resize(evidence_.collectives.size(), action_);
    for (std::size_t p = 0; p < memory::kPhases; ++p) {
        const auto phase = static_cast<Phase>(p);
        evidence_.peak_bytes[p] = space_.ledger().peak_bytes(phase);
        for (std::size_t category = 0; category < memory::kCategories; ++category)
            evidence_.peak_bytes_by_category[p][category] =
                space_.ledger().peak_bytes(phase, static_cast<memory::Category>(category));
    }
    evidence_.allocations = allocations_.take();
    return std::move(evidence_);
}

}  // namespace zeroproof::harness
