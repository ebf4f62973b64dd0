#include "suites/conformance/partition_model.h"

#include <algorithm>
#include <map>

#include "suites/conformance/transformer_plan.h"

namespace zeroproof::suites {

std::size_t round_up(std::size_t value, std::size_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

std::vector<PartitionedSet> partitioned_sets(const Case& c, int stage, int ranks) {
    const bool by_units = stage == 3;
    std::map<std::pair<bool, std::vector<std::size_t>>, std::size_t> elements;
    for (std::size_t p = 0; p < c.parameters.size(); ++p) {
        // Only stage 3 partitions frozen weights.
        if (!c.parameters[p].trainable && stage != 3) continue;
        std::vector<std::size_t> users;
        for (std::size_t u = 0; by_units && u < c.units.size(); ++u)
            if (std::ranges::count(c.units[u].parameters, p)) users.push_back(u);
        elements[{c.parameters[p].trainable, users}] += c.parameters[p].elements();
    }
    const auto n = static_cast<std::size_t>(stage == 0 ? 1 : ranks);
    const std::size_t bucket = round_up(c.bucket_elements, n);
    std::vector<PartitionedSet> sets;
    for (const auto& [key, count] : elements) {
        PartitionedSet set{key.first, key.second, count, round_up(count, n), 0};
        set.buckets = (set.padded + bucket - 1) / bucket;
        sets.push_back(set);
    }
    return sets;
}

memory::Counts counts_of(const Case& c, int stage, int ranks) {
    memory::Counts counts{0, 0, 0, 0};
    for (const PartitionedSet& set : partitioned_sets(c, stage, ranks)) {
        (set.trainable ? counts.trainable : counts.frozen) += set.elements;
        (set.trainable ? counts.padded_trainable : counts.padded_frozen) += set.padded;
    }
    if (stage != 3) {
        for (const ParameterCase& parameter : c.parameters)
            if (!parameter.trainable) counts.frozen += parameter.elements();
        counts.padded_frozen = round_up(counts.frozen, static_cast<std::size_t>(ranks));
    }
    if (stage == 0)
        counts.padded_trainable = round_up(counts.trainable, static_cast<std::size_t>(ranks));
    return counts;
}

Gathered gathered_in_pass(const Case& c, const std::vector<PartitionedSet>& sets) {
    Gathered gathered;
    for (const PartitionedSet& set : sets)
        for (const std::size_t unit : set.units) {
            const bool kept = c.prefetch && unit > 0 && std::ranges::count(set.units, unit - 1);
            if (kept) continue;
            gathered.elements += set.padded;
            gathered.operations += set.buckets;
        }
    return gathered;
}

Gathered gathered_again(const Case& c, const std::vector<PartitionedSet>& sets) {
    Gathered gathered;
    for (const auto& segment : recomputed_segments(c))
        for (std::size_t unit = segment.begin; unit + 1 < segment.end; ++unit)
            for (const PartitionedSet& set : sets) {
                if (!std::ranges::count(set.units, unit)) continue;
                gathered.elements += set.padded;
                gathered.operations += set.buckets;
            }
    return gathered;
}

}  // namespace zeroproof::suites
