// When a bucket is complete, against a plain count of what is still to come.
#include "reference/bucket_tracker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace zeroproof::reference {
namespace {

using Key = std::pair<std::size_t, std::size_t>;

struct Setting {
    std::vector<std::size_t> sizes;
    std::vector<std::vector<std::size_t>> flats;  // members
    std::vector<std::vector<std::size_t>> units;
    std::size_t bucket;
};

// Two flats, tied and looped parameters, an empty one, one in no unit, buckets across parameters.
const Setting kSettings[] = {
    {{7, 5}, {{0, 1}}, {{0}, {1}}, 4},
    {{7, 5, 3}, {{0, 1, 2}}, {{0, 2}, {1}, {2}, {0}}, 4},
    {{7, 5, 3}, {{2, 0}, {1}}, {{0}, {1}, {1}, {2}}, 6},
    {{7, 0, 9, 4}, {{0, 1, 2, 3}}, {{0, 1}, {2}}, 4},
    {{3}, {{0}}, {{0}}, 100},
    {{9}, {{0}}, {{}, {0}, {}}, 2},
};

class Tracked {
  public:
    explicit Tracked(const Setting& s) : setting(s) {
        for (const std::size_t size : s.sizes)
            parameters.push_back({.name = std::to_string(parameters.size()), .elements = size});
        for (const auto& members : s.flats) flats.emplace_back(parameters, members, 2, s.bucket);
        for (const auto& used : s.units) units.push_back({"unit", used});
    }
    // Whether a unit uses an element of the bucket.
    bool touches(std::size_t unit, Key key) const {
        const Range bucket = flats[key.first].bucket(key.second);
        for (const std::size_t p : setting.units[unit]) {
            if (!std::ranges::count(flats[key.first].members(), p)) continue;
            const Range range = flats[key.first].range_of(p);
            for (std::size_t e = range.begin; e < range.end; ++e)
                if (e >= bucket.begin && e < bucket.end) return true;
        }
        return false;
    }
    const Setting& setting;
    std::vector<Parameter> parameters;
    std::vector<FlatParameters> flats;
    std::vector<Unit> units;
};

// FC04: firing before the last use of a tied parameter, or once per use.
TEST(BucketTracker, EachBucketCompletesOnceAtTheLastUnitThatTouchesIt) {
    for (const Setting& s : kSettings) {
        const Tracked t(s);
        BucketTracker tracker(t.flats, t.units);
        for (int pass = 0; pass < 2; ++pass) {  // FC08: a counter that is not reset
            tracker.reset();
            std::set<Key> complete;
            for (std::size_t unit = t.units.size(); unit-- > 0;)
                for (const BucketId id : tracker.visit(unit)) {
                    const Key key{id.flat, id.bucket};
                    EXPECT_TRUE(complete.insert(key).second) << "twice";
                    EXPECT_TRUE(t.touches(unit, key));
                    for (std::size_t later = 0; later < unit; ++later)
                        EXPECT_FALSE(t.touches(later, key)) << "a use is still to come";
                }
            for (const BucketId id : tracker.never_used()) {
                EXPECT_TRUE(complete.insert({id.flat, id.bucket}).second);
                for (std::size_t unit = 0; unit < t.units.size(); ++unit)
                    EXPECT_FALSE(t.touches(unit, {id.flat, id.bucket}));
            }
            std::size_t buckets = 0;
            for (const FlatParameters& flat : t.flats) buckets += flat.buckets();
            EXPECT_EQ(complete.size(), buckets) << "one never travels";
        }
    }
}

// Backward fills a flat range from its end: the last bucket goes first.
TEST(BucketTracker, BucketsOfOneUnitCompleteLastFirst) {
    const Setting s{{12}, {{0}}, {{0}}, 4};
    const Tracked t(s);
    BucketTracker tracker(t.flats, t.units);
    const auto complete = tracker.visit(0);
    ASSERT_EQ(complete.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(complete[i].bucket, 2 - i);
}

}  // namespace
}  // namespace zeroproof::reference
