#include "harness/subjects/reference_peak.h"

#include <algorithm>
#include <map>
#include <set>

#include "suites/conformance/partition_model.h"

namespace zeroproof::harness {

namespace {

using suites::Case;
using suites::PartitionedSet;

class PeakModel {
  public:
    explicit PeakModel(const Case& c)
        : case_(c),
          sets_(partitioned_sets(c, c.stage, c.ranks)),
          width_(memory::size_of(weight_type(c.precision))),
          n_(static_cast<std::size_t>(c.ranks)),
          bucket_elements_(suites::round_up(c.bucket_elements, n_)) {
        at_rest_ = exact_model_state_bytes(c.stage, memory::state_bytes(weight_type(c.precision)),
                                           counts_of(c, c.stage, c.ranks), c.ranks)
                       .total();
    }

    std::size_t forward() {
        start();
        const auto units = static_cast<long long>(case_.units.size());
        for (long long unit = 0; unit < units; ++unit) note(weights(unit, unit + 1));
        return peak_;
    }

    std::size_t backward() {
        start();
        count_uses();
        for (auto unit = static_cast<long long>(case_.units.size()) - 1; unit >= 0; --unit) {
            const std::size_t gradient = gradient_of(unit);
            note(weights(unit, unit - 1) + gradient + filling() + travelling_);
            // The unit's weights are released, the next one's stay.
            const std::size_t held = weights(-1, unit - 1) + gradient;
            if (case_.stage >= 2) fill_buckets(unit, held);
        }
        for (const auto& [id, uses] : uses_)
            if (uses == 0 && case_.stage >= 2) send(id, 0);
        return peak_;
    }

    std::size_t step() {
        start();
        return peak_;
    }

  private:
    using BucketId = std::pair<std::size_t, std::size_t>;  // set and bucket
    // Buckets that are complete at the same time travel the last first.
    struct Sooner {
        bool operator()(const BucketId& a, const BucketId& b) const {
            return a.first != b.first ? a.first < b.first : a.second > b.second;
        }
    };

    void start() { peak_ = at_rest_; }
    void note(std::size_t beyond_rest) { peak_ = std::max(peak_, at_rest_ + beyond_rest); }

    // Whole weights of a unit and of the next one, where they are partitioned. Negative: no unit.
    std::size_t weights(long long unit, long long next) const {
        if (case_.stage != 3) return 0;
        std::size_t elements = 0;
        for (const PartitionedSet& set : sets_) {
            const auto used_by = [&](long long u) {
                return u >= 0 && std::ranges::count(set.units, static_cast<std::size_t>(u)) > 0;
            };
            if (used_by(unit) || (case_.prefetch && used_by(next))) elements += set.padded;
        }
        return elements * width_;
    }

    std::size_t gradient_of(long long unit) const {
        std::size_t elements = 0;
        for (const std::size_t p : case_.units[static_cast<std::size_t>(unit)].parameters)
            if (case_.parameters[p].trainable) elements += case_.parameters[p].elements();
        return elements * width_;
    }

    // The set that a parameter is in, and where it begins there.
    std::pair<std::size_t, std::size_t> place_of(std::size_t parameter) const {
        const auto users_of = [&](std::size_t p) {
            std::vector<std::size_t> users;
            for (std::size_t u = 0; case_.stage == 3 && u < case_.units.size(); ++u)
                if (std::ranges::count(case_.units[u].parameters, p)) users.push_back(u);
            return users;
        };
        const auto in_set = [&](std::size_t p, const PartitionedSet& set) {
            return case_.parameters[p].trainable == set.trainable && users_of(p) == set.units;
        };
        std::size_t s = 0;
        while (!in_set(parameter, sets_[s])) ++s;
        std::size_t begin = 0;
        for (std::size_t p = 0; p < parameter; ++p)
            if (in_set(p, sets_[s])) begin += case_.parameters[p].elements();
        return {s, begin};
    }

    std::vector<BucketId> buckets_of(std::size_t parameter) const {
        std::vector<BucketId> buckets;
        const std::size_t elements = case_.parameters[parameter].elements();
        if (!case_.parameters[parameter].trainable || elements == 0) return buckets;
        const auto [set, begin] = place_of(parameter);
        for (std::size_t b = begin / bucket_elements_; b * bucket_elements_ < begin + elements; ++b)
            buckets.emplace_back(set, b);
        return buckets;
    }

    std::size_t bytes_of(BucketId id) const {
        const std::size_t begin = id.second * bucket_elements_;
        return std::min(bucket_elements_, sets_[id.first].padded - begin) * width_;
    }

    std::size_t filling() const {
        std::size_t bytes = 0;
        for (const BucketId& id : filling_) bytes += bytes_of(id);
        return bytes;
    }

    void count_uses() {
        for (std::size_t s = 0; s < sets_.size(); ++s)
            for (std::size_t b = 0; sets_[s].trainable && b < sets_[s].buckets; ++b)
                uses_[{s, b}] = 0;
        for (const suites::UnitCase& unit : case_.units)
            for (const std::size_t p : unit.parameters)
                for (const BucketId& id : buckets_of(p)) ++uses_[id];
        uses_left_ = uses_;
    }

    void fill_buckets(long long unit, std::size_t held) {
        std::set<BucketId, Sooner> complete;
        for (const std::size_t p : case_.units[static_cast<std::size_t>(unit)].parameters)
            for (const BucketId& id : buckets_of(p)) {
                filling_.insert(id);
                if (--uses_left_[id] == 0) complete.insert(id);
            }
        note(held + filling() + travelling_);
        for (const BucketId& id : complete) send(id, held);
    }

    // The bucket travels; the one before has arrived and is freed.
    void send(BucketId id, std::size_t held) {
        travelling_ = 0;
        filling_.insert(id);
        note(held + filling());
        travelling_ = bytes_of(id) + bytes_of(id) / n_;
        filling_.erase(id);
        note(held + filling() + travelling_);
        if (!case_.overlap) travelling_ = 0;
    }

    const Case& case_;
    std::vector<PartitionedSet> sets_;
    std::size_t width_;
    std::size_t n_;
    std::size_t bucket_elements_;
    std::size_t at_rest_ = 0;
    std::size_t peak_ = 0;
    std::map<BucketId, int, Sooner> uses_;
    std::map<BucketId, int, Sooner> uses_left_;  // in the backward pass
    std::set<BucketId> filling_;
    std::size_t travelling_ = 0;
};

}  // namespace

std::size_t reference_peak_bytes(const suites::Case& c, memory::Phase phase) {
    PeakModel model(c);
    switch (phase) {
        case memory::Phase::forward: return model.forward();
        case memory::Phase::backward: return model.backward();
        default: return model.step();
    }
}

}  // namespace zeroproof::harness
