#include "scenarios/planner/planned_stage.h"

#include <algorithm>

namespace zeroproof::scenarios {

using memory::Category;

namespace {

std::size_t round_up(std::size_t value, std::size_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

PlannedStage::PlannedStage(const PlannedModel& model, const StageOptions& options,
                           memory::Ledger& ledger)
    : model_(model),
      options_(options),
      ledger_(ledger),
      width_(memory::size_of(options.type)),
      bucket_elements_(round_up(options.bucket_elements, options.ranks)) {
    lay_out();
    take_states();
    if (options.stage < 2) return;
    for (std::size_t s = 0; s < sets_.size(); ++s)
        for (std::size_t b = 0; sets_[s].trainable && b * bucket_elements_ < sets_[s].padded; ++b)
            uses_[{s, b}] = 0;
    for (const auto& unit : model.units)
        for (const std::size_t p : unit)
            for (const BucketId& id : buckets_of(p)) ++uses_[id];
}

// Stage 3 lays together what the same units use; the others, all that is trainable. Only stage 3
// partitions frozen weights.
void PlannedStage::lay_out() {
    std::vector<std::vector<std::size_t>> users(model_.parameters.size());
    for (std::size_t u = 0; u < model_.units.size(); ++u)
        for (const std::size_t p : model_.units[u])
            if (users[p].empty() || users[p].back() != u) users[p].push_back(u);
    std::map<std::pair<bool, std::vector<std::size_t>>, std::vector<std::size_t>> by_use;
    for (std::size_t p = 0; p < model_.parameters.size(); ++p) {
        const bool by_units = options_.stage == 3;
        by_use[{model_.parameters[p].trainable, by_units ? users[p] : std::vector<std::size_t>()}]
            .push_back(p);
    }
    places_.resize(model_.parameters.size());
    const std::size_t owners = options_.stage == 0 ? 1 : options_.ranks;
    for (const auto& [use, members] : by_use) {
        Set set;
        set.trainable = use.first;
        set.users = use.second;
        set.members = members;
        for (const std::size_t p : members) {
            places_[p] = {sets_.size(), set.elements};
            set.elements += model_.parameters[p].elements;
        }
        const bool padded = set.trainable || options_.stage == 3;
        set.padded = padded ? round_up(set.elements, owners) : set.elements;
        (set.trainable ? counts_.trainable : counts_.frozen) += set.elements;
        (set.trainable ? counts_.padded_trainable : counts_.padded_frozen) +=
            round_up(set.elements, options_.ranks);
        sets_.push_back(std::move(set));
    }
}

void PlannedStage::take_states() {
    const memory::StateBytes each = memory::state_bytes(options_.type);
    const auto ranks = static_cast<int>(options_.ranks);
    const memory::ModelStates states =
        exact_model_state_bytes(options_.stage, each, counts_, ranks);
    states_.emplace_back(ledger_, Category::parameter, states.weight);
    states_.emplace_back(ledger_, Category::gradient, states.gradient);
    // The optimizer's bytes are a master of 4 where there is one, a momentum of 4, a variance of 4.
    const std::size_t owned = states.optimizer / each.optimizer;
    states_.emplace_back(ledger_, Category::master, owned * (each.optimizer - 8));
    states_.emplace_back(ledger_, Category::momentum, owned * 4);
    states_.emplace_back(ledger_, Category::variance, owned * 4);
}

void PlannedStage::prefetch(std::size_t unit) {
    if (options_.stage != 3) return;
    for (const std::size_t s : sets_of(unit))
        if (sets_[s].holders++ == 0)
            sets_[s].whole = {ledger_, Category::parameter, sets_[s].padded * width_};
    prefetched_ = unit;
}

void PlannedStage::gather(std::size_t unit) {
    if (prefetched_ != unit) prefetch(unit);
    prefetched_.reset();
}

void PlannedStage::release(std::size_t unit) {
    if (options_.stage != 3) return;
    for (const std::size_t s : sets_of(unit))
        if (--sets_[s].holders == 0) sets_[s].whole = {};
}

void PlannedStage::begin_backward() {
    uses_left_ = uses_;
}

std::vector<PlannedBytes> PlannedStage::unit_gradients(std::size_t unit) const {
    std::vector<PlannedBytes> gradients;
    for (const std::size_t p : model_.units[unit])
        if (model_.parameters[p].trainable)
            gradients.emplace_back(ledger_, Category::gradient,
                                   model_.parameters[p].elements * width_);
    return gradients;
}

void PlannedStage::accept(std::size_t unit) {
    if (options_.stage < 2) return;
    std::set<BucketId, Sooner> complete;
    for (const std::size_t p : model_.units[unit])
        for (const BucketId& id : buckets_of(p)) {
            open(id);
            if (--uses_left_[id] == 0) complete.insert(id);
        }
    for (const BucketId& id : complete) send(id);
}

void PlannedStage::end_backward() {
    if (options_.stage < 2) return;
    for (const auto& [id, uses] : uses_)
        if (uses == 0) send(id);
    travelling_.reset();
}

std::size_t PlannedStage::bucket_bytes(BucketId id) const {
    const std::size_t begin = id.second * bucket_elements_;
    return std::min(bucket_elements_, sets_[id.first].padded - begin) * width_;
}

std::vector<std::size_t> PlannedStage::sets_of(std::size_t unit) const {
    std::set<std::size_t> sets;
    for (const std::size_t p : model_.units[unit]) sets.insert(places_[p].first);
    return {sets.begin(), sets.end()};
}

std::vector<PlannedStage::BucketId> PlannedStage::buckets_of(std::size_t parameter) const {
    std::vector<BucketId> buckets;
    const PlannedParameter& p = model_.parameters[parameter];
    if (!p.trainable || p.elements == 0) return buckets;
    const auto [set, begin] = places_[parameter];
    for (std::size_t b = begin / bucket_elements_; b * bucket_elements_ < begin + p.elements; ++b)
        buckets.emplace_back(set, b);
    return buckets;
}

void PlannedStage::open(BucketId id) {
    if (!filling_.contains(id))
        filling_.emplace(id, PlannedBytes(ledger_, Category::buffer, bucket_bytes(id)));
}

// The bucket travels; the one before has arrived and is freed.
void PlannedStage::send(BucketId id) {
    travelling_.reset();
    open(id);
    Travelling next{std::move(filling_.extract(id).mapped()),
                    PlannedBytes(ledger_, Category::buffer, bucket_bytes(id) / options_.ranks)};
    travelling_ = std::move(next);
    if (!options_.overlap) travelling_.reset();
}

}  // namespace zeroproof::scenarios
