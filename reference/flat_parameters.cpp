#include "reference/flat_parameters.h"

#include <algorithm>
#include <stdexcept>

namespace zeroproof::reference {

namespace {

std::size_t round_up(std::size_t value, std::size_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

Range intersection(Range a, Range b) {
    const std::size_t begin = std::max(a.begin, b.begin);
    return {begin, std::max(begin, std::min(a.end, b.end))};
}

}  // namespace

FlatParameters::FlatParameters(std::span<const Parameter> parameters,
                               std::vector<std::size_t> members, std::size_t owners,
                               std::size_t bucket_elements)
    : members_(std::move(members)),
      owners_(owners),
      bucket_elements_(round_up(bucket_elements, owners)) {
    for (const std::size_t member : members_) {
        const std::size_t end = elements_ + parameters[member].elements;
        ranges_.push_back({elements_, end});
        elements_ = end;
    }
    padded_elements_ = round_up(elements_, owners_);
}

std::size_t FlatParameters::buckets() const {
    return (padded_elements_ + bucket_elements_ - 1) / bucket_elements_;
}

Range FlatParameters::bucket(std::size_t bucket) const {
    const std::size_t begin = bucket * bucket_elements_;
    return {begin, std::min(begin + bucket_elements_, padded_elements_)};
}

Range FlatParameters::owned(std::size_t bucket_index, std::size_t owner) const {
    const Range whole = bucket(bucket_index);
    const std::size_t part = whole.size() / owners_;
    const std::size_t begin = whole.begin + owner * part;
    return {begin, begin + part};
}

std::size_t FlatParameters::shard_begin(std::size_t bucket_index) const {
    return bucket(bucket_index).begin / owners_;
}

Range FlatParameters::range_of(std::size_t parameter) const {
    const auto at = std::find(members_.begin(), members_.end(), parameter);
    if (at == members_.end()) throw std::logic_error("a parameter that is not a member");
    return ranges_[static_cast<std::size_t>(at - members_.begin())];
}

std::vector<Slice> FlatParameters::slices(std::size_t owner) const {
    std::vector<Slice> slices;
    for (std::size_t b = 0; b < buckets(); ++b) {
        const Range mine = owned(b, owner);
        for (std::size_t m = 0; m < members_.size(); ++m) {
            const Range part = intersection(mine, ranges_[m]);
            if (part.size() == 0) continue;
            slices.push_back({.parameter = members_[m],
                              .begin = part.begin - ranges_[m].begin,
                              .elements = part.size(),
                              .flat_begin = part.begin,
                              .shard_begin = shard_begin(b) + (part.begin - mine.begin)});
        }
    }
    return slices;
}

}  // namespace zeroproof::reference
