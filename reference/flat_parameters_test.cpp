// The layout by brute force: who owns what, and that nothing is lost, doubled or out of place.
#include "reference/flat_parameters.h"

#include <gtest/gtest.h>

#include <set>

namespace zeroproof::reference {
namespace {

std::vector<Parameter> parameters_of(const std::vector<std::size_t>& sizes) {
    std::vector<Parameter> parameters;
    for (const std::size_t size : sizes)
        parameters.push_back({.name = std::to_string(parameters.size()), .elements = size});
    return parameters;
}

struct Layout {
    std::vector<std::size_t> sizes;
    std::size_t owners;
    std::size_t bucket;
};
std::vector<Layout> all_layouts() {
    std::vector<Layout> layouts;
    for (const std::size_t owners : {1, 2, 3, 4, 5, 8, 12})
        for (const std::size_t bucket : {1, 5, 12, 1000})
            for (const auto& sizes :
                 std::vector<std::vector<std::size_t>>{{},
                                                       {0},
                                                       {1},
                                                       {0, 1, 2},
                                                       {owners - 1, owners, owners + 1},
                                                       {15, 7, 13},
                                                       {8, 0, 24, 0},
                                                       {3 * bucket % 97}})
                layouts.push_back({sizes, owners, bucket});
    return layouts;
}
FlatParameters flat_of(const Layout& l, const std::vector<Parameter>& parameters) {
    std::vector<std::size_t> members(parameters.size());
    for (std::size_t m = 0; m < members.size(); ++m) members[m] = members.size() - 1 - m;
    return {parameters, members, l.owners, l.bucket};
}

// FC09, FC12: a wrong stride, or an empty parameter that shifts its neighbours.
TEST(FlatParameters, PaddingIsLeastAndBucketsTileIt) {
    for (const Layout& l : all_layouts()) {
        const auto parameters = parameters_of(l.sizes);
        const FlatParameters flat = flat_of(l, parameters);
        std::size_t total = 0;
        for (const std::size_t size : l.sizes) total += size;
        EXPECT_EQ(flat.elements(), total);
        EXPECT_EQ(flat.padded_elements() % l.owners, 0u);
        EXPECT_LT(flat.padded_elements() - total, l.owners);
        EXPECT_EQ(flat.shard_elements() * l.owners, flat.padded_elements());
        std::size_t at = 0;
        const std::size_t whole = flat.buckets() > 0 ? flat.bucket(0).size() : 0;
        for (std::size_t b = 0; b < flat.buckets(); ++b) {
            const Range bucket = flat.bucket(b);
            EXPECT_EQ(bucket.begin, at);
            EXPECT_GT(bucket.size(), 0u);
            EXPECT_LT(bucket.size(), l.bucket + l.owners);
            EXPECT_EQ(bucket.size() % l.owners, 0u);
            EXPECT_TRUE(bucket.size() == whole || b + 1 == flat.buckets());
            at = bucket.end;
        }
        EXPECT_EQ(at, flat.padded_elements());
        std::size_t place = 0;  // members follow each other without a gap
        for (const std::size_t member : flat.members()) {
            EXPECT_EQ(flat.range_of(member).begin, place);
            EXPECT_EQ(flat.range_of(member).size(), parameters[member].elements);
            place = flat.range_of(member).end;
        }
    }
}

// FC10: every element has one owner, at one place of its shard, and padding has none.
TEST(FlatParameters, SlicesCoverEachElementOnceAndShardsWithoutOverlap) {
    for (const Layout& l : all_layouts()) {
        const auto parameters = parameters_of(l.sizes);
        const FlatParameters flat = flat_of(l, parameters);
        std::vector<std::vector<int>> owners(parameters.size());
        for (std::size_t p = 0; p < parameters.size(); ++p)
            owners[p].resize(parameters[p].elements);
        for (std::size_t owner = 0; owner < l.owners; ++owner) {
            std::set<std::size_t> places;
            for (const Slice& slice : flat.slices(owner)) {
                EXPECT_GT(slice.elements, 0u);
                for (std::size_t i = 0; i < slice.elements; ++i) {
                    ++owners[slice.parameter].at(slice.begin + i);
                    EXPECT_EQ(slice.flat_begin + i,
                              flat.range_of(slice.parameter).begin + slice.begin + i);
                    EXPECT_LT(slice.shard_begin + i, flat.shard_elements());
                    EXPECT_TRUE(places.insert(slice.shard_begin + i).second);
                }
            }
        }
        for (const auto& of_parameter : owners)
            for (const int count : of_parameter) EXPECT_EQ(count, 1);
    }
}

// A reduce-scatter in place delivers the r-th part to rank r: ownership must follow.
TEST(FlatParameters, OwnedPartsAreTheEqualPartsOfABucketInRankOrder) {
    for (const Layout& l : all_layouts()) {
        const auto parameters = parameters_of(l.sizes);
        const FlatParameters flat = flat_of(l, parameters);
        std::size_t shard = 0;
        for (std::size_t b = 0; b < flat.buckets(); ++b) {
            EXPECT_EQ(flat.shard_begin(b), shard);
            std::size_t at = flat.bucket(b).begin;
            for (std::size_t owner = 0; owner < l.owners; ++owner) {
                EXPECT_EQ(flat.owned(b, owner).begin, at);
                EXPECT_EQ(flat.owned(b, owner).size(), flat.bucket(b).size() / l.owners);
                at = flat.owned(b, owner).end;
            }
            EXPECT_EQ(at, flat.bucket(b).end);
            shard += flat.owned(b, 0).size();
        }
        EXPECT_EQ(shard, flat.shard_elements());
    }
}

TEST(FlatParameters, ParameterThatIsNoMemberIsAnError) {
    const auto parameters = parameters_of({3, 4});
    EXPECT_THROW((void)FlatParameters(parameters, {1}, 2, 4).range_of(0), std::logic_error);
}

}  // namespace
}  // namespace zeroproof::reference
