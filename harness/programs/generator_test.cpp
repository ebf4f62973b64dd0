// What the generator draws: legal, decidable, the same again, and at the edges.
#include "harness/programs/generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/programs/decidable.h"
#include "harness/programs/words.h"
#include "harness/subjects/reference_subject.h"
#include "suites/conformance/case_writer.h"
#include "suites/conformance/family.h"

namespace zeroproof::harness {
namespace {

using suites::ActionKind;

std::string text_of(const Case& c) {
    return suites::case_to_json(c).dump();
}

class Generator : public testing::Test {
  protected:
    Generator() {
        // All that a case can ask for.
        declaration_.name = "everything";
        declaration_.stages = {0, 1, 2, 3};
        declaration_.precisions = {suites::Precision::fp32, suites::Precision::bf16,
                                   suites::Precision::fp16};
        for (std::size_t kind = 0; kind < suites::kActionKinds; ++kind)
            declaration_.actions.insert(static_cast<ActionKind>(kind));
        declaration_.options = {{"chunks", {{"1", "2", "4"}, {1, 2}}},
                                {"late", {{"false", "true"}, {3}}}};
    }
    std::vector<Case> some(std::uint64_t seed, std::uint64_t count) const {
        std::vector<Case> cases;
        for (std::uint64_t k = 0; k < count; ++k) cases.push_back(random_case(space_, seed, k));
        return cases;
    }

    suites::Declaration declaration_;
    ProgramSpace space_{declaration_, {0, 1, 2, 3}, {1, 2, 3, 4}};
};

TEST_F(Generator, GivesTheSameProgramWhenAskedAgain) {
    const std::vector<Case> cases = some(7, 20);
    EXPECT_EQ(text_of(random_case(space_, 7, 13)), text_of(cases[13]));
    EXPECT_NE(text_of(random_case(space_, 8, 13)), text_of(cases[13]));
    EXPECT_EQ(program_number(cases[13]), 13u);
    std::set<std::string> all;
    for (const Case& c : cases) all.insert(text_of(c));
    EXPECT_EQ(all.size(), cases.size());
}

TEST_F(Generator, EveryCaseIsLegalAndTheSameWhenReadAgain) {
    for (const Case& c : some(1, 400)) {
        const auto read = legal(c);
        ASSERT_TRUE(read) << text_of(c);
        EXPECT_EQ(text_of(*read), text_of(c));
        EXPECT_TRUE(decidable(c, declaration_)) << c.id;
        EXPECT_EQ(outside_declaration(c, declaration_), "") << c.id;
    }
}

TEST_F(Generator, ComesToEveryActionAndEveryFeature) {
    std::set<ActionKind> kinds;
    std::set<std::string> features;
    for (const Case& c : some(2, 1500)) {
        for (const suites::Action& action : c.program) kinds.insert(action.kind);
        features.merge(features_of(c));
    }
    EXPECT_EQ(kinds.size(), suites::kActionKinds);
    for (const char* feature : {"several ranks",
                                "several micro-steps",
                                "several steps",
                                "several parameters",
                                "fp16",
                                "bf16",
                                "gradients that round",
                                "echo",
                                "hostile surroundings",
                                "no overlap",
                                "no prefetch",
                                "clipping",
                                "several groups",
                                "decoupled decay",
                                "L2 decay",
                                "tied",
                                "in no unit",
                                "unused",
                                "frozen",
                                "empty tensor",
                                "small buckets",
                                "gradients not finite",
                                "on other ranks",
                                "in another stage",
                                "discard",
                                "step without gradient",
                                "chunks = 2",
                                "chunks = 4",
                                "late = true"})
        EXPECT_TRUE(features.contains(feature)) << feature;
}

TEST_F(Generator, ComesToSizesAboutRanksAndBuckets) {
    std::set<int> about_ranks;
    std::set<int> about_buckets;
    bool has_fewer = false;
    bool has_matrix = false;
    bool has_scalar = false;
    bool has_empty_group = false;
    for (const Case& c : some(3, 600)) {
        for (const suites::ParameterCase& p : c.parameters) {
            const int elements = static_cast<int>(p.elements());
            about_ranks.insert(elements - c.ranks);
            about_buckets.insert(elements - static_cast<int>(c.bucket_elements));
            has_matrix |= p.shape.size() == 2;
            has_scalar |= p.shape.empty();
        }
        has_fewer |= c.trainable_elements() < static_cast<std::size_t>(c.ranks);
        for (int g = 0; g < static_cast<int>(c.groups.size()); ++g)
            has_empty_group |=
                std::ranges::count(c.parameters, g, &suites::ParameterCase::group) == 0;
    }
    for (const int difference : {-1, 0, 1}) {
        EXPECT_TRUE(about_ranks.contains(difference)) << difference;
        EXPECT_TRUE(about_buckets.contains(difference)) << difference;
    }
    EXPECT_TRUE(has_fewer && has_matrix && has_scalar && has_empty_group);
}

TEST_F(Generator, StaysWithinTheSpace) {
    suites::Declaration narrow;
    narrow.stages = {2, 3};
    narrow.precisions = {suites::Precision::bf16};
    narrow.actions = suites::common_actions();
    narrow.skips_non_finite = false;
    const ProgramSpace space{narrow, {3}, {2}};
    for (std::uint64_t k = 0; k < 300; ++k) {
        const Case c = random_case(space, 1, k);
        EXPECT_EQ(outside_declaration(c, narrow), "") << c.id;
        EXPECT_EQ(c.stage, 3);
        EXPECT_EQ(c.ranks, 2);
        EXPECT_TRUE(c.injections.empty());
    }
}

// Above the norm nothing happens, below it all is scaled: at the norm itself rounding decides.
TEST_F(Generator, NothingIsDecidableWhereRoundingDecides) {
    Case c = suites::read_family(R"({"family": "f", "purpose": "p", "program": ["window"],
        "ranks": 2, "clip_norm": 0.5, "parameters": [{"name": "a", "shape": [5]}]})",
                                 "test")
                 .front();
    EXPECT_TRUE(decidable(c, declaration_));
    c.clip_norm = suites::expect(c).back().norm.value;
    EXPECT_FALSE(decidable(c, declaration_)) << "in fp32";
    declaration_.norm_accumulation = memory::DType::fp64;
    EXPECT_TRUE(decidable(c, declaration_)) << "exact in fp64";
    declaration_.meanings.clip_epsilon = 1e-6;
    EXPECT_FALSE(decidable(c, declaration_));
}

}  // namespace
}  // namespace zeroproof::harness
