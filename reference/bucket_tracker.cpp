#include "reference/bucket_tracker.h"

#include <algorithm>

namespace zeroproof::reference {

BucketTracker::BucketTracker(std::span<const FlatParameters> flats, std::span<const Unit> units)
    : touched_(units.size()) {
    for (std::size_t f = 0; f < flats.size(); ++f) {
        const FlatParameters& flat = flats[f];
        uses_.emplace_back(flat.buckets(), 0);
        for (std::size_t b = flat.buckets(); b-- > 0;) {
            const Range bucket = flat.bucket(b);
            for (std::size_t u = 0; u < units.size(); ++u)
                for (const std::size_t parameter : units[u].parameters) {
                    if (!std::ranges::count(flat.members(), parameter)) continue;
                    const Range range = flat.range_of(parameter);
                    if (range.begin >= bucket.end || range.end <= bucket.begin || range.size() == 0)
                        continue;
                    touched_[u].push_back({f, b});
                    ++uses_[f][b];
                }
            if (uses_[f][b] == 0) never_used_.push_back({f, b});
        }
    }
    reset();
}

void BucketTracker::reset() {
    uses_left_ = uses_;
}

std::vector<BucketId> BucketTracker::visit(std::size_t unit) {
    std::vector<BucketId> complete;
    for (const BucketId id : touched_[unit])
        if (--uses_left_[id.flat][id.bucket] == 0) complete.push_back(id);
    return complete;
}

}  // namespace zeroproof::reference
